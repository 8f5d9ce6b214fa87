"""Networks whose gradients are returned in windows, as emitted projects."""

import tempfile
from functools import lru_cache
from pathlib import Path

import numpy as np
from nets import join, linear
from poplar_projects import machine

from snnc.backends.poplar.emit import emit_poplar
from snnc.backends.poplar.engine import open_engine
from snnc.backends.reference.engine import ReferenceEngine
from snnc.compiler.ir.graph import Graph, Input, OneToOne, Output, Population
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import SGD
from snnc.compiler.lowering.lower import lower
from snnc.compiler.neurons.library import LI, LIF
from snnc.compiler.tiles.blocks.grouping import neurons_per_tile, split
from snnc.compiler.tiles.blocks.tile_range import TileRange
from snnc.compiler.tiles.mapper import make_plan
from snnc.compiler.tiles.placement.placement import Placement


def deep(random, widths=(20, 33, 12, 40), classes=4, inputs=30):
    """Return a chain of dense spiking layers."""
    graph = Graph("deep")
    graph.add("x", Input((inputs,), "spikes"))
    before, n = "x", inputs
    for i, width in enumerate(widths):
        graph.add(f"h{i}", Population(LIF(0.9), (width,)))
        join(graph, f"f{i}", linear(random, width, n, bias=True, gain=4), before, f"h{i}")
        before, n = f"h{i}", width
    graph.add("readout", Population(LI(0.9), (classes,)))
    join(graph, "out", linear(random, classes, n), before, "readout")
    graph.add("y", Output())
    graph.connect("readout", "y")
    return graph


def tangled(random):
    """Sources with several targets and lags, a loop through three populations, frozen weights, one-to-one and dense connections."""
    graph = deep(random)
    graph.name = "tangled"
    join(graph, "skip", linear(random, 40, 20), "h0", "h3")
    join(graph, "late", linear(random, 12, 20, learnable=False), "h0", "h2", delay=1)
    join(graph, "later", linear(random, 4, 33), "h1", "readout", delay=2)
    join(graph, "rec", linear(random, 33, 33), "h1", "h1", delay=1)
    join(graph, "back", linear(random, 20, 12), "h2", "h0", delay=1)
    join(graph, "gain", OneToOne(random.normal(size=33).astype(np.float32), learnable=True), "h1", "h1", delay=2)
    return graph


def undivided(neurons, chips=1):
    """Return a placer with at most `neurons` per tile and the whole batch on each, over this many chips."""

    def place(problem):
        ranges, first = [], 0
        for layer in problem.network.layers:
            width = -(-layer.neurons // neurons)
            ranges.append(TileRange((first,), neurons_per_tile(layer.neurons, width), ((0, problem.batch),), 6))
            first += width
        yield Placement(tuple(ranges), chips)

    return place


def anywhere(random, copies=1):
    """Return a placer with random numbers of replicas and tiles for each population, one after the other, across chips."""

    def place(problem):
        ranges, first = [], 0
        batch, tiles = problem.batch // copies, problem.target.tiles // copies
        for layer in problem.network.layers:
            width = int(random.integers(1, min(layer.neurons, 4) + 1))
            replicas = int(random.integers(1, min(batch, 3) + 1))
            starts = tuple(first + r * width for r in range(replicas))
            columns = int(random.choice([1, 2, 3, 6]))
            ranges.append(TileRange(starts, neurons_per_tile(layer.neurons, width), tuple(split(batch, replicas)), columns))
            first += replicas * width
        assert first <= tiles
        yield Placement(tuple(r.repeated(copies, tiles, batch) for r in ranges), problem.target.chips, copies)

    return place


class Windowed:
    """A network, mapped and emitted."""

    def __init__(self, graph, target, steps=12, batch=5, window=(-0.3, np.inf), surrogate=None, **options):
        self.steps, self.batch = steps, batch
        self.program = lower(
            graph,
            loss=parse_loss("ce_mean_membrane"),
            loss_output="y",
            optimizer=SGD(1e-3),
            surrogate=surrogate,
            gradient_window=window,
            steps=steps,
        )
        self.plan = make_plan(self.program, target, steps=steps, batch=batch, **{"gradients": "windowed", **options})
        self.above = tempfile.TemporaryDirectory(prefix="snnc-windowed-")
        self.folder = emit_poplar(self.program, self.plan, Path(self.above.name) / "project")

    def open(self):
        return open_engine(self.folder)

    def reference(self):
        return ReferenceEngine(self.program)

    def data(self, seed, density=0.4):
        random = np.random.default_rng(seed)
        inputs = {}
        for info in self.program.inputs:
            x = (random.random((self.steps, self.batch, *info.shape)) < density).astype(np.float32)
            inputs[info.id] = x if info.kind == "spikes" else x * random.random(x.shape).astype(np.float32)
        classes = next(o.shape[0] for o in self.program.outputs if o.id == self.program.loss_output)
        return inputs, random.integers(0, classes, self.batch)

    def worst_error(self, steps=2):
        """Return the largest relative error of a gradient over some training steps, measured as in the tests of Poplar."""
        engine, reference = self.open(), self.reference()
        worst = 0.0
        for step in range(steps):
            inputs, target = self.data(step)
            found, wanted = engine.train_batch(inputs, target, 1e-3), reference.train_batch(inputs, target, 1e-3)
            assert abs(found - wanted) <= 1e-5 * max(1.0, abs(wanted))
            gradients, right = engine.gradients(), reference.gradients()
            assert gradients.keys() == right.keys()
            whole = np.sqrt(sum(float(np.square(g).sum()) for g in right.values()))
            for name, gradient in right.items():
                error = np.linalg.norm(gradients[name] - gradient) / max(np.linalg.norm(gradient), 0.05 * whole)
                worst = max(worst, float(error))
        return worst


CASES = {
    "one tile": (tangled, machine(1), {"batch": 2}),
    "four tiles": (deep, machine(4), {"batch": 3}),
    "many tiles": (deep, machine(120), {"batch": 16, "placer": undivided(1)}),
    "replicas over two chips": (tangled, machine(24, 2), {"batch": 7, "placer": anywhere(np.random.default_rng(4))}),
    "two chips, further windows": (tangled, machine(6, 2), {"chips": 2, "batch": 7, "capacity": 3, "gradient_capacity": 4}),
}


@lru_cache(maxsize=8)
def windowed(name):
    """Emit a case."""
    make, target, options = CASES[name]
    return Windowed(make(np.random.default_rng(3)), target, **options)
