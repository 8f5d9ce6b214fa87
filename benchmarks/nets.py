"""Benchmarks by name, grouped in suites.

==============  ======================================================================================================
suite           networks
==============  ======================================================================================================
``logged``      the 12 nets of the published timing log, with activity counted in a simulation
``multi_layer`` one IPU filled with 2 to 5 hidden layers, batch 48, Adam, three data sets, nine capacities
``multi_neuron``  one IPU filled at 2 to 32 neurons per tile, batch 24, SGD
``multi_ipu``   1 to 16 IPUs x 2, 4, 8 neurons per tile at batch 24 (equally many layers per IPU: up to 188,284 neurons and 184 M weights),
                and batches of 48 to 384 on 1 to 4 IPUs; 32 and 64 IPUs (not in the paper) only by name
``everyday``    W1, W1 without recurrence, W2, a convolutional net, sparse nets of 10,000 neurons with fan-out 40 (random; in 16 clusters)
==============  ======================================================================================================

Names: ``logged-h2-a1`` (2 hidden layers, capacities of 1 % of the neurons), ``nmnist-h3-a0.5``, ``shd-n8-b3-a5`` (8 neurons per tile,
8 / 2 x 3 hidden layers), ``shd-x16-n8-a5`` (16 IPUs), ``shd-x4-n2-a5-B96`` (batch 96), ``w1`` …
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Final

from snnc.benchmarks.benchmark import Benchmark
from snnc.benchmarks.everyday import EVERYDAY
from snnc.benchmarks.log import logged_runs
from snnc.benchmarks.published import PublishedNet, moving_strokes, simulate
from snnc.benchmarks.published.simulate import SimulatedCounts
from snnc.benchmarks.published_nets import DATASETS, SURROGATE, WINDOW, layer_names, network_of, published_net
from snnc.errors import UnknownBenchmarkError

SUITES: Final = ("logged", "multi_layer", "multi_neuron", "multi_ipu", "everyday")
MULTIPLIER: Final = {"logged": 4.0, "multi_layer": 2.0, "multi_neuron": 2.0, "multi_ipu": 2.0}
"""Factor of the initial weights (``weight_mul`` of the published program), from the file name of the log and from the run files."""
MACHINES: Final = {1: "gc200", 2: "m2000", 4: "m2000", 8: "pod16", 16: "pod16", 32: "pod64", 64: "pod64"}
"""Machine for each number of IPUs."""
SEED: Final = 0
"""Seed for weights and drawn data."""
FULL: Final = "assumed: every capacity in use"
"""Origin of the activity of networks that were not simulated."""


def names(suite: str | None = None) -> tuple[str, ...]:
    """Return the names of the benchmarks of a suite; None: of all suites."""
    chosen = SUITES if suite is None else (suite,)
    return tuple(name for one in chosen for name in _names(one))


def _names(suite: str) -> Iterator[str]:
    percents = {"multi_layer": (0.5, 1, 2, 2.5, 5, 10, 20, 25, 50), "multi_neuron": (1, 2.5, 5, 10)}
    if suite == "logged":
        yield from (run.name for run in logged_runs())
    elif suite == "multi_layer":
        yield from (f"{d}-h{h}-a{a:g}" for d in DATASETS for h in (2, 3, 4, 5) for a in percents[suite])
    elif suite == "multi_neuron":
        yield from (f"shd-n{n}-b{b}-a{a:g}" for n in (2, 4, 8, 16, 32) for b in (2, 3, 4) for a in percents[suite])
    elif suite == "multi_ipu":
        yield from (f"shd-x{x}-n{n}-a{a:g}" for x in (1, 2, 4, 8, 16) for n in (2, 4, 8) for a in (2.5, 5))
        yield from (f"shd-x{x}-n2-a5-B{b}" for x in (1, 2, 4) for b in (48, 96, 192, 384))
    elif suite == "everyday":
        yield from EVERYDAY
    else:
        raise UnknownBenchmarkError(f"there is no suite {suite!r}; there are {', '.join(SUITES)}.")


def benchmark(name: str) -> Benchmark:
    """Return the benchmark of that name; weights are drawn only when its network is built. Raise UnknownBenchmarkError if there is none."""
    if name in EVERYDAY:
        return EVERYDAY[name](name)
    if match := re.fullmatch(r"(logged|nmnist|dvs|shd)-h([2-5])-a(\d+(?:\.\d+)?)", name):
        return _multi_layer(name, match[1], int(match[2]), float(match[3]))
    if match := re.fullmatch(r"shd(?:-x(\d+))?-n(\d+)(?:-b([234]))?-a(\d+(?:\.\d+)?)(?:-B(\d+))?", name):
        ipus, per_tile, base = int(match[1] or 1), int(match[2]), int(match[3] or 3)
        if ipus in MACHINES and per_tile >= 2 and per_tile % 2 == 0:
            return _multi_neuron(name, ipus, per_tile, base, float(match[4]), int(match[5] or 24))
    raise UnknownBenchmarkError(f"there is no benchmark {name!r}; names look like {', '.join(next(_names(suite)) for suite in SUITES)}.")


def same_network(name: str) -> str:
    """Return the ``multi_neuron`` name of a ``multi_ipu`` network on one IPU with batch 24; any other name is returned unchanged."""
    match = re.fullmatch(r"shd-x1-n(\d+)-a(\d+(?:\.\d+)?)", name)
    return f"shd-n{match[1]}-b3-a{match[2]}" if match else name


def _multi_layer(name: str, data: str, layers: int, percent: float) -> Benchmark:
    suite = "logged" if data == "logged" else "multi_layer"
    source = DATASETS["nmnist" if data == "logged" else data]
    net = published_net(name, source, layers=layers, per_tile=2, ipus=1, activity=percent / 100, batch=48, optimizer="adam")
    if suite != "logged":
        return _benchmark(net, suite, 1, FULL)
    counts = _simulated(net)
    hidden = layer_names(net)[:-1]
    return replace(
        _benchmark(counts.of(net), suite, 1, "simulated: moving pen strokes"),
        counts={"input": counts.inputs, **dict(zip(hidden, counts.spikes, strict=False))},
        support_counts=dict(zip(hidden, counts.gradients, strict=False)),
    )


@cache
def _simulated(net: PublishedNet) -> SimulatedCounts:
    """Return the counts of a logged net; the simulation takes half a second."""
    return simulate(net, moving_strokes(net.steps, net.batch, SEED), multiplier=MULTIPLIER["logged"], seed=SEED)


def _multi_neuron(name: str, ipus: int, per_tile: int, base: int, percent: float, batch: int) -> Benchmark:
    sizes = {"layers": per_tile // 2 * base, "per_tile": per_tile, "ipus": ipus, "batch": batch}
    net = published_net(name, DATASETS["shd"], **sizes, activity=percent / 100, optimizer="sgd")
    return _benchmark(net, "multi_ipu" if "-x" in name else "multi_neuron", ipus, FULL)


def _benchmark(net: PublishedNet, suite: str, chips: int, source: str) -> Benchmark:
    layers = dict(zip(layer_names(net), net.layers, strict=True))
    sending = {name: layer for name, layer in layers.items() if name != "readout"}
    return Benchmark(
        name=net.name,
        suite=suite,
        target=MACHINES[chips],
        chips=chips,
        steps=net.steps,
        batch=net.batch,
        loss="ce_count",
        optimizer=net.optimizer,
        surrogate=SURROGATE,
        build=network_of(net, MULTIPLIER[suite], SEED),
        build_dense=network_of(net, MULTIPLIER[suite], SEED, dense=True),
        activity={"input": net.input_spikes / net.inputs, **{name: one.spikes / one.neurons for name, one in sending.items()}},
        activity_source=source,
        capacity={"input": net.input_capacity, **{name: one.capacity for name, one in sending.items()}},
        published=net,
        gradient_window=WINDOW,
        support={name: one.gradients / one.neurons for name, one in sending.items()},
    )


def on_chips(benchmark: Benchmark, chips: int) -> Benchmark:
    """Return the benchmark with another number of chips, a key of :data:`MACHINES`, and the machine that has them."""
    return replace(benchmark, chips=chips, target=MACHINES[chips])


def with_steps(benchmark: Benchmark, steps: int) -> Benchmark:
    """Return the benchmark with another number of steps (the published scripts use 10 in ``multi_neuron``)."""
    net = benchmark.published
    return replace(benchmark, steps=steps, published=None if net is None else replace(net, steps=steps))


def with_full_capacities(benchmark: Benchmark) -> Benchmark:
    """Return the benchmark with as many spikes and gradients of each layer per step as its capacity; unchanged without a published net."""
    net = benchmark.published
    return benchmark if net is None else _benchmark(net.full(), benchmark.suite, benchmark.chips, FULL)
