"""Joules of a training step, predicted: an upper bound by the power of a device, a lower one by published energies of operations."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

from snnc.benchmarks.benchmark import Benchmark

WORDS: Final = 2
"""Words of local memory that a product moves at least: the weight is read, and the sum or the gradient is read or written."""


@dataclass(frozen=True)
class Energies:
    """Published numbers: picojoules of operations, and watts of devices, by name."""

    picojoules: dict[str, float]
    watts: dict[str, float]
    sources: dict[str, str]


@dataclass(frozen=True)
class SynapticWork:
    """Products of weights in a training step of a batch.

    Attributes
    ----------
    accumulates
        Additions of weights or deltas that spikes cause, forward and for gradients of weights.
    multiplications
        Products of deltas and weights, for gradients of populations.
    """

    accumulates: float
    multiplications: float


def energies() -> Energies:
    """Return the numbers of ``energy.toml``."""
    data = tomllib.loads(files("snnc.benchmarks.reproduce").joinpath("energy.toml").read_text())
    every = [*data["operation"], *data["device"]]
    return Energies(
        {one["name"]: float(one["picojoules"]) for one in data["operation"]},
        {one["name"]: float(one["watts"]) for one in data["device"]},
        {one["name"]: one["source"] for one in every},
    )


def synaptic_work(case: Benchmark, *, events: bool) -> SynapticWork:
    """Count the products of a network's dense connections; with `events`, those of silent sources are left out.

    Neurons, the optimiser and everything that moves between tiles or to other memory are not counted.
    """
    program = case.program()
    activity = case.buffer_activity(program)
    accumulates = multiplications = 0.0
    inputs = {info.id for info in program.inputs}
    for connection in program.connections:
        if connection.weight is None:
            continue
        weights = program.parameters[connection.weight].value.size * case.steps * case.batch
        rate = activity.get(connection.source_buffer, 1.0) if events else 1.0
        accumulates += 2 * rate * weights
        multiplications += 0.0 if connection.source in inputs else weights
    return SynapticWork(accumulates, multiplications)


def least_joules(work: SynapticWork, known: Energies, *, events: bool) -> float:
    """Return what the products alone take: a spike adds a weight, a value is multiplied first; each moves two words of local memory."""
    product = known.picojoules["addition"] + known.picojoules["multiplication"]
    words = WORDS * known.picojoules["access"]
    each = known.picojoules["addition"] if events else product
    return 1e-12 * (work.accumulates * (each + words) + work.multiplications * (product + words))
