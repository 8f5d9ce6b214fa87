"""Random networks of dense, sparse and convolutional connections, to compare predictions with emulation (``prediction.py mixed:SEED``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import snnc
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import SGD, Adam
from snnc.compiler.lowering.lower import lower
from snnc.compiler.machines import load_target
from snnc.compiler.machines.target import Target

LOSSES = ("ce_mean_membrane", "ce_count", "ce_rate", "ce_max_membrane", "mse_count")


@dataclass(frozen=True)
class Case:
    """A lowered network with its machine and one batch of inputs; `options` are passed to the mapper.

    `dropping` is the same network with the spike limit of `options`, for measuring the activity; None if the plan drops no spikes.
    """

    program: StepProgram
    target: Target
    steps: int
    batch: int
    classes: int
    inputs: Mapping[str, Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    dropping: StepProgram | None = None


def spikes(program: StepProgram, steps: int, batch: int, density: float, seed: int = 0) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    return {i.id: (random.random((steps, batch, *i.shape)) < density).astype(np.float32) for i in program.inputs}


def mixed_case(seed: int) -> Case:
    """Draw a network: an image or a vector of spikes or values, up to five hidden layers, recurrence, delays, skips, up to four chips."""
    random = np.random.default_rng(seed)
    net = snnc.Network("net", seed=seed)
    kind = "spikes" if random.random() < 0.8 else "values"
    image = random.random() < 0.4
    size = int(random.integers(6, 15))
    shape = (int(random.integers(1, 3)), size, size) if image else int(random.integers(30, 200))
    last: Any = net.input(shape, kind=kind, name="input")  # type: ignore[arg-type]
    if image:
        last = _image(net, random, last)
    flat = _layers(net, random, last, flatten=image)
    classes = int(random.integers(2, 12))
    readout = net.population(classes, snnc.LI(beta=0.9), name="readout")
    net.connect(flat, readout, snnc.Dense(seed=seed))
    loss = LOSSES[int(random.integers(2))] if random.random() < 0.7 else LOSSES[int(random.integers(len(LOSSES)))]
    optimizer = Adam(1e-3) if random.random() < 0.7 else SGD(1e-2)
    steps, batch = int(random.integers(6, 20)), int(random.integers(2, 25))
    program = lower(net.graph(), loss=parse_loss(loss), optimizer=optimizer, steps=steps)
    chips = int(random.choice([1, 1, 2, 4]))
    name = str(random.choice(["gc200", "bow", "gc2"]))
    machine = load_target("gc200" if chips > 1 and name == "gc2" else name)  # the target file of the GC2 describes no links between chips
    tiles = int(random.integers(2, 160)) // chips + 1
    target = replace(machine, name=f"{machine.name}-{tiles}x{chips}", tiles_per_chip=tiles, chips=chips)
    options: dict[str, Any] = {"recompute": 4} if random.random() < 0.15 else {}
    return Case(program, target, steps, batch, classes, spikes(program, steps, batch, random.uniform(0.01, 0.15), seed), options)


def _image(net: snnc.Network, random: np.random.Generator, last: Any) -> Any:
    for n in range(int(random.integers(1, 3))):
        layers: list[Any] = [snnc.Conv(int(random.integers(2, 7)), int(random.choice([3, 5])), padding=1 + n % 2)]
        if random.random() < 0.5:
            layers.insert(0, (snnc.MaxPool if random.random() < 0.5 else snnc.AvgPool)(2))
        maps = net.population(net.shape_after(last, layers), snnc.LIF(beta=0.8), name=f"maps{n}")
        net.connect(last, maps, layers)
        last = maps
    return last


def _layers(net: snnc.Network, random: np.random.Generator, last: Any, *, flatten: bool) -> Any:
    before = None
    for n in range(int(random.integers(1, 4))):
        width = int(random.integers(20, 140))
        neuron = (snnc.LIF(beta=0.9, reset="zero"), snnc.LIF(beta=0.7, reset="subtract"), snnc.ALIF())[int(random.integers(3))]
        layer = net.population(width, neuron, name=f"hidden{n}")
        sparse = not flatten and random.random() < 0.35
        gain = float(random.uniform(1.0, 3.0))
        net.connect(last, layer, _sparse(random, width, last, gain) if sparse else snnc.Dense())
        if random.random() < 0.35:
            matrix = _sparse(random, width, layer, gain) if random.random() < 0.5 else snnc.Dense(bias=False)
            net.connect(layer, layer, matrix, delay=int(random.integers(1, 4)))
        if before is not None and random.random() < 0.4:
            net.connect(before, layer, snnc.Dense(bias=False), delay=int(random.integers(0, 3)))
        before, last, flatten = layer, layer, False
    return last


def _sparse(random: np.random.Generator, targets: int, source: Any, gain: float) -> snnc.Sparse:
    sources = int(np.prod(source.shape))
    connected = random.random((targets, sources)) < random.uniform(0.03, 0.3)
    connected[np.arange(targets), random.integers(0, sources, targets)] = True
    values = random.normal(0, gain / np.sqrt(max(connected.sum() / targets, 1)), (targets, sources))
    return snnc.Sparse(np.where(connected, values, 0.0).astype(np.float32))
