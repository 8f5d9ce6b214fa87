"""Networks whose predictions are compared with the emulator: the digits example, small networks, benchmarks, and random networks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from mixed_nets import Case, mixed_case, spikes

import snnc
from snnc.benchmarks.benchmark import by_buffer
from snnc.benchmarks.everyday import w_network
from snnc.benchmarks.matched import drawn_inputs
from snnc.benchmarks.nets import benchmark, names, with_steps
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import Adam
from snnc.compiler.lowering.lower import lower
from snnc.compiler.lowering.spike_limits import SpikeLimit
from snnc.compiler.machines import load_target
from snnc.compiler.machines.target import Target
from snnc.driver.loading import as_graph
from snnc.errors import UnknownBenchmarkError

EXAMPLE: Final = Path(__file__).parents[3] / "examples" / "digits"


def small(tiles: int, chips: int = 1) -> Target:
    return replace(load_target("gc200"), name=f"gc200-{tiles}x{chips}", tiles_per_chip=tiles, chips=chips)


def recurrent(inputs: int, hidden: int, classes: int) -> snnc.Network:
    return w_network((hidden,), recurrent=True, name="net", inputs=inputs, classes=classes)


def deep(kind: Literal["spikes", "values"], *widths: int) -> snnc.Network:
    net = snnc.Network("net")
    last: Any = net.input(widths[0], kind=kind)
    for n, width in enumerate(widths[1:-1]):
        layer = net.population(width, snnc.LIF(beta=0.8), name=f"hidden{n}")
        net.connect(last, layer, snnc.Dense(seed=n))
        last = layer
    net.connect(last, net.population(widths[-1], snnc.LI(beta=0.9), name="readout"), snnc.Dense(seed=9))
    return net


def adaptive() -> snnc.Network:
    """Return a network of adaptive neurons, followed by a one-to-one connection with a gain per neuron."""
    net = snnc.Network("net")
    spikes = net.input(200, kind="spikes")
    hidden = net.population(120, snnc.ALIF(), name="hidden")
    gain = net.population(120, snnc.LIF(beta=0.7), name="gain")
    readout = net.population(10, snnc.LI(beta=0.9), name="readout")
    net.connect(spikes, hidden, snnc.Dense(seed=0))
    net.connect(hidden, gain, snnc.OneToOne(np.full(120, 1.5, dtype=np.float32)))
    net.connect(gain, readout, snnc.Dense(seed=2))
    return net


def small_case(net: snnc.Network, target: Target, steps: int, batch: int, classes: int = 10, **options: Any) -> Case:
    """Return a case whose inputs spike independently with probability 5 %."""
    program = lower(net.graph(), loss=parse_loss("ce_mean_membrane"), optimizer=Adam(1e-3), steps=steps)
    return Case(program, target, steps, batch, classes, spikes(program, steps, batch, 0.05), options)


def digits() -> Case:
    with np.load(EXAMPLE / "digits.npz") as data:
        x = data["x"][:32].astype(np.float32)
    steps = x.shape[1]
    program = lower(as_graph(EXAMPLE / "digits.onnx", input_kind="spikes"), loss=parse_loss("ce_count"), optimizer=Adam(1e-3), steps=steps)
    inputs = {i.id: x.swapaxes(0, 1).reshape(steps, len(x), *i.shape) for i in program.inputs}
    return Case(program, load_target("gc200"), steps, len(x), 10, inputs)


def of_benchmark(name: str) -> Case:
    """Return a benchmark and its inputs: moving pen strokes (like N-MNIST) for suite "logged", else random spikes in at most 50 steps."""
    one = benchmark(name)
    one = one if one.suite == "logged" else with_steps(one, min(one.steps, 50))
    program = one.program()
    logged = one.suite == "logged"
    inputs = drawn_inputs(one, program) if logged else spikes(program, one.steps, one.batch, one.activity["input"])
    options: dict[str, Any] = {"chips": one.chips}
    if one.capacity:
        room = by_buffer(program, one.capacity)
        options |= {
            "mode": "drop",
            "capacity": room,
            "gradient_capacity": {buffer: room[buffer] for buffer in by_buffer(program, one.support)},
        }
    classes = min(math.prod(program.buffers[o.source.buffer].shape) for o in program.outputs)
    return Case(program, load_target(one.target), one.steps, one.batch, classes, inputs, options)


def random_case(seed: int) -> Case:
    """Return a random network, machine and inputs: dense layers of random width, bursts, samples of different activity, both modes."""
    random = np.random.default_rng(seed)
    widths = [int(n) for n in random.integers(20, 160, random.integers(2, 6))]
    steps, batch, classes = int(random.integers(5, 30)), int(random.integers(2, 33)), int(random.integers(2, 20))
    net, kinds = snnc.Network("net", seed=seed), ("zero", "subtract")
    last: Any = net.input(widths[0], kind="spikes")
    for n, (inputs, width) in enumerate(itertools.pairwise(widths)):
        beta, reset = float(random.uniform(0.5, 0.98)), kinds[int(random.integers(2))]
        layer = net.population(width, snnc.LIF(beta=beta, reset=reset), name=f"hidden{n}")  # type: ignore[arg-type]
        net.connect(last, layer, snnc.Dense(init=random.normal(size=(width, inputs)) * random.uniform(1.0, 3.0) / np.sqrt(inputs)))
        if random.random() < 0.3:
            net.connect(layer, layer, snnc.Dense(bias=False, seed=seed + 90 + n), delay=1)
        last = layer
    readout = net.population(classes, snnc.LI(beta=0.9), name="readout")
    net.connect(last, readout, snnc.Dense(seed=seed))
    window = (-0.2, 0.2) if random.random() < 0.5 else None
    program = lower(net.graph(), loss=parse_loss("ce_mean_membrane"), optimizer=Adam(1e-3), steps=steps, gradient_window=window)
    rate = random.beta(0.5, 4.0, size=(steps, 1, 1)) * random.uniform(0.2, 1.5, size=(1, batch, 1))
    inputs = {i.id: (random.random((steps, batch, *i.shape)) < rate).astype(np.float32) for i in program.inputs}
    options: dict[str, Any] = {}
    if random.random() < 0.5:
        options = {"mode": "drop" if random.random() < 0.5 else "exact", "capacity": int(random.integers(8, 40))}
    dropping = None
    if options.get("mode") == "drop":
        limit = SpikeLimit(options["capacity"])
        dropping = lower(
            net.graph(), loss=parse_loss("ce_mean_membrane"), optimizer=Adam(1e-3), steps=steps, gradient_window=window, limit=limit
        )
    target = small(int(random.integers(1, 120)), int(random.integers(1, 3)))
    return Case(program, target, steps, batch, classes, inputs, options, dropping)


SMALL: Final[Mapping[str, Callable[[], Case]]] = {
    "digits": digits,
    "W1": lambda: small_case(recurrent(700, 256, 20), load_target("gc200"), 100, 64, classes=20),
    "W1 drop 60": lambda: small_case(recurrent(700, 256, 20), load_target("gc200"), 100, 64, classes=20, mode="drop", capacity=60),
    "W1 drop 30": lambda: small_case(recurrent(700, 256, 20), load_target("gc200"), 50, 64, classes=20, mode="drop", capacity=30),
    "recurrent, 64 tiles": lambda: small_case(recurrent(300, 128, 10), small(64), 40, 16),
    "recurrent, 2 chips": lambda: small_case(recurrent(300, 128, 10), small(40, 2), 40, 16),
    "recurrent, 4 chips": lambda: small_case(recurrent(300, 128, 10), small(24, 4), 40, 16),
    "further windows": lambda: small_case(recurrent(300, 128, 10), small(64), 40, 16, capacity=12),
    "deep, spikes": lambda: small_case(deep("spikes", 256, 128, 96, 64, 10), small(100), 40, 16),
    "deep, values": lambda: small_case(deep("values", 256, 128, 96, 64, 10), small(100), 40, 16),
    "deep, one tile": lambda: small_case(deep("spikes", 60, 40, 30, 10), small(1), 20, 6),
    "adaptive, one to one": lambda: small_case(adaptive(), small(48), 40, 16),
}
"""The digits example and small networks, by name."""
BENCHMARKS: Final = (*names("logged"), "w1", "w1-ff", "dvs-conv", "nmnist-h3-a1", "shd-n4-b3-a5", "shd-n8-b2-a2.5")
"""Benchmarks, each of which the emulator runs in a minute or two."""
RANDOM: Final = 8
"""Number of random networks that ``prediction.py`` compares if none is named; ``random:SEED`` names further ones."""


def all_names() -> tuple[str, ...]:
    return (*SMALL, *BENCHMARKS, *(f"random:{seed}" for seed in range(RANDOM)))


def case_of(name: str) -> Case:
    """Return the network of that name: one of :data:`SMALL`, a benchmark of :mod:`snnc.benchmarks`, ``random:SEED`` or ``mixed:SEED``."""
    if name in SMALL:
        return SMALL[name]()
    if name.startswith("mixed:"):
        return mixed_case(int(name.partition(":")[2]))
    if name.startswith("random:"):
        return random_case(int(name.partition(":")[2]))
    try:
        return of_benchmark(name)
    except UnknownBenchmarkError as error:
        raise SystemExit(f"{error.text} Small ones: {', '.join(SMALL)}; random:SEED; mixed:SEED.") from error
