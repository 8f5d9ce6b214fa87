"""Poplar projects that several tests share, emitted and built once per test run."""

from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
from nets import delayed, dense, feedback, join, learnable, linear, of_model, recurrent, skip

from snnc.backends.poplar.emit import emit_poplar
from snnc.backends.poplar.engine import PoplarEngine, open_engine
from snnc.backends.reference.engine import ReferenceEngine
from snnc.compiler.files.temporary import TemporaryFolder
from snnc.compiler.ir.graph import FileLayout, Flatten, Graph, Input, OneToOne, Output, Population
from snnc.compiler.ir.plan import Plan
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import SGD, Adam
from snnc.compiler.lowering.lower import lower
from snnc.compiler.machines import load_target
from snnc.compiler.neurons.library import LI, LIF, SLSTM
from snnc.compiler.tiles.mapper import make_plan
from snnc.compiler.tiles.search.search import EFFORT

STEPS, BATCH = 12, 5
HOSTILE = ('"; system("touch pwned"); //', "*/ int pwned; /*", "a\\\nb??/", "ünïcode → \u2028", "{{ 7*7 }} {% raw %}")


def machine(tiles, chips=1):
    """Return a GC200 with few tiles."""
    return replace(load_target("gc200"), name=f"tiny{tiles}x{chips}", chips=chips, tiles_per_chip=tiles)


@dataclass(frozen=True, eq=False)
class Project:
    program: StepProgram
    plan: Plan
    folder: Path

    def open(self) -> PoplarEngine:
        return open_engine(self.folder)

    def reference(self) -> ReferenceEngine:
        return ReferenceEngine(self.program)

    def data(self, seed=1, density=0.4):
        random = np.random.default_rng(seed)
        inputs = {}
        for info in self.program.inputs:
            x = (random.random((STEPS, BATCH, *info.shape)) < density).astype(np.float32)
            if info.kind == "values":
                x *= random.random(x.shape).astype(np.float32)
            inputs[info.id] = np.broadcast_to(x[:1], x.shape).copy() if info.static else x
        loss = [o.shape[0] for o in self.program.outputs if o.id == self.program.loss_output]
        return inputs, random.integers(0, loss[0], BATCH) if loss else None


def spiking(random, hidden=50):
    """Return a network with spikes as input whose hidden spikes are recorded."""
    graph = dense(random, inputs=40, hidden=hidden, kind="spikes", readout=LI(0.9))
    graph.add("spikes", Output())
    graph.connect("hidden", "spikes")
    return graph


def spiking_recurrent(random):
    graph = spiking(random)
    graph.name = "spiking_recurrent"
    join(graph, "rec", linear(random, 50, 50), "hidden", "hidden", delay=1)
    join(graph, "gain", OneToOne(random.normal(size=50).astype(np.float32), learnable=True), "hidden", "hidden", delay=2)
    return graph


def several_inputs(random):
    """Spikes, an image of values and a static input; one-to-one connections forward and back; a delayed output."""
    graph = Graph("several_inputs")
    graph.add("spikes", Input((6,), "spikes"))
    graph.add("image", Input((2, 3)))
    graph.add("static", Input((5,), "values", FileLayout(None, 0)))
    graph.add("flat", Flatten())
    graph.connect("image", "flat")
    for name in ("first", "second"):
        graph.add(name, Population(LIF(0.9), (8,)))
    graph.add("readout", Population(LI(0.9), (3,)))
    for source, width in (("spikes", 6), ("flat", 6), ("static", 5)):
        join(graph, f"in_{source}", linear(random, 8, width, gain=3), source, "first")
    join(graph, "each", OneToOne(random.normal(size=8).astype(np.float32) + 2, learnable=True), "first", "second")
    join(graph, "all", OneToOne(np.full((), 0.7, np.float32), learnable=True), "second", "first", delay=1)
    join(graph, "out", linear(random, 3, 8, gain=3), "second", "readout")
    join(graph, "late", linear(random, 3, 8, gain=3), "second", "readout", delay=3)
    for name, source, delay in (("y", "readout", 0), ("z", "second", 2)):
        graph.add(name, Output())
        graph.connect(source, name, delay=delay)
    return graph


def hostile(random):
    """Names that would be code if not escaped; a static input, delayed and direct outputs; nothing is trained."""
    a, b, c, d, e = HOSTILE
    graph = Graph(a)
    graph.add(a, Input((6,), "values", FileLayout(None, 0)))
    graph.add(b, Population(LIF(0.9), (8,)))
    graph.add("z" + a, Input((8,), "spikes"))
    graph.add(d, Population(LI(0.9), (3,)))
    join(graph, c, linear(random, 8, 6, bias=True, gain=3), a, b)
    join(graph, a + c, linear(random, 8, 8), "z" + a, b)
    join(graph, b + c, linear(random, 8, 8), b, b, delay=2, source_port="v")
    join(graph, e, linear(random, 3, 8, gain=3), b, d)
    for name, source, delay in ((e + b, d, 0), (e + c, b, 2), (e + d, "z" + a, 1)):
        graph.add(name, Output())
        graph.connect(source, name, delay=delay)
    return graph


CASES = {
    "recurrent": (recurrent, "ce_mean_membrane", Adam(1e-2), machine(4), {}),
    "skip": (skip, "ce_rate", SGD(1e-2, 0.9), machine(1), {}),
    "delayed": (delayed, "ce_count", SGD(1e-2), machine(4), {}),
    "feedback": (feedback, "mse_count", Adam(1e-2), load_target("gc200"), {}),
    "learnable": (learnable, "ce_max_membrane", Adam(1e-2), machine(2, 2), {}),
    "replicas": (recurrent, "ce_mean_membrane", Adam(1e-2), machine(3, 5), {"chips": 5}),
    "lstm": (lambda random: of_model(random, SLSTM(threshold=0.1)), "ce_count", Adam(1e-2), machine(8), {}),
    "exact": (spiking_recurrent, "ce_count", Adam(1e-2), machine(16), {"capacity": 3, "loss_output": "y"}),
    "exact several inputs": (several_inputs, "ce_mean_membrane", Adam(1e-2), machine(3), {"capacity": 1, "loss_output": "y"}),
    "drop": (partial(spiking, hidden=220), "ce_count", Adam(1e-2), machine(1), {"capacity": 5, "mode": "drop", "loss_output": "y"}),
    "hostile": (hostile, None, None, machine(4), {}),
}


@lru_cache(maxsize=1)
def workplace():
    return TemporaryFolder(prefix="snnc-poplar-")


@lru_cache(maxsize=32)
def project(name):
    """Emit a case, planned as for users, because tests of predictions also read it."""
    make, loss, optimizer, target, given = CASES[name]
    options = {key: value for key, value in given.items() if key != "loss_output"}
    graph = make(np.random.default_rng(3))
    program = lower(graph, loss=parse_loss(loss) if loss else None, loss_output=given.get("loss_output"), optimizer=optimizer, steps=STEPS)
    plan = make_plan(program, target, steps=STEPS, batch=BATCH, effort=EFFORT, **options)
    return Project(program, plan, emit_poplar(program, plan, workplace().path / name))
