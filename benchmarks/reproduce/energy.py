"""Count the operations of a training step, and predict their energy from published energies of operations at 45 nm.

Energies of operations and power limits of devices are in ``energy.toml``.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final

from snnc.benchmarks.matched import matched_problem
from snnc.compiler.ir.step_program import StepProgram
from snnc.driver.activity import measure_activity

ENERGY_NETS: Final = ("w1-5", "w1-ff-5", "w3-5", "w2-5", "logged-h2-a5")
QUICK_NETS: Final = ("w1-5", "w1-ff-5", "logged-h2-a5")
COUNTED: Final = {True: "of spikes", False: "of all values"}
"""Words for the counted products, in keys of a row: with or without events."""
LANES: Final = 8
"""float32 numbers of a vector instruction (AVX2)."""
HISTORY_ROLES: Final = ("state", "output", "saved")
"""Roles of buffers whose values of all time steps the backward pass reads."""
WORDS: Final = 2
"""Minimum number of words of local memory that a product moves: a weight, and a sum or gradient."""


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


def synaptic_work(program: StepProgram, activity: Mapping[str, float], steps: int, batch: int, *, events: bool) -> SynapticWork:
    """Count the products of a network's dense connections; with `events`, only those of sources that spike.

    `activity` has the spikes per value and step, by buffer. Neurons, the optimiser and data movement between tiles or to other memory are
    not counted.

    Raises
    ------
    ValueError
        The network has a connection with weights that is not dense.
    """
    accumulates = multiplications = 0.0
    inputs = {info.id for info in program.inputs}
    for connection in program.connections:
        if connection.weight is None:
            continue
        if connection.kind != "dense":
            raise ValueError(f"products of a {connection.kind} connection are not counted")
        weights = program.parameters[connection.weight].value.size * steps * batch
        rate = activity.get(connection.source_buffer, 1.0) if events else 1.0
        accumulates += 2 * rate * weights
        multiplications += 0.0 if connection.source in inputs else weights
    return SynapticWork(accumulates, multiplications)


def moved_words(program: StepProgram, steps: int, batch: int) -> float:
    """Return the 32-bit words that a training step moves to and from main memory, if one time step and the weights fit into the caches.

    Data that the backward pass reads for every time step is written once and read once; a trained parameter, its gradient and two moments
    of an optimiser are read and written once.
    """
    stored = [buffer for buffer in program.buffers.values() if buffer.lifetime == "sequence" and buffer.role in HISTORY_ROLES]
    histories = sum(math.prod(buffer.shape) for buffer in stored)
    parameters = sum(p.value.size for p in program.parameters.values() if p.learnable)
    return 2.0 * histories * steps * batch + 2.0 * 4 * parameters


def count_energy(name: str) -> dict[str, Any]:
    """Count the products of a training step, first for spikes only, then for all values, and the words moved to and from main memory."""
    problem = matched_problem(name)
    program, steps, batch = problem.program, problem.options.steps or 1, problem.options.batch or 1
    activity = measure_activity(program, problem.inputs, name).mean
    found: dict[str, Any] = {"net": name, "moved_words": moved_words(program, steps, batch)}
    for events, words in COUNTED.items():
        work = synaptic_work(program, activity, steps, batch, events=events)
        found |= {f"accumulates {words}": work.accumulates, f"multiplications {words}": work.multiplications}
    return found


def counts_of(row: Mapping[str, Any], *, events: bool) -> SynapticWork:
    """Return the counts of a row of :func:`count_energy`."""
    return SynapticWork(row[f"accumulates {COUNTED[events]}"], row[f"multiplications {COUNTED[events]}"])


def product_joules(work: SynapticWork, known: Energies, *, events: bool) -> float:
    """Return the joules of the products alone, each with two words of local memory.

    With `events`, the weight of a spike is added; otherwise every value is multiplied with its weight, and the product is added.
    """
    product = known.picojoules["addition"] + known.picojoules["multiplication"]
    words = WORDS * known.picojoules["access"]
    each = known.picojoules["addition"] if events else product
    return 1e-12 * (work.accumulates * (each + words) + work.multiplications * (product + words))


def processor_joules(work: SynapticWork, moved: float, known: Energies) -> float:
    """Return the joules of the products of spikes on a CPU: arithmetic, instructions, caches, and `moved` words of main memory.

    Every product moves two words of a cache of 1 MiB, and eight of them share one instruction (AVX2). Neurons, searches for spikes and
    waiting are not included, so a CPU in that process technology takes more.
    """
    each = WORDS * known.picojoules["cache"] + known.picojoules["instruction"] / LANES
    adding = known.picojoules["addition"]
    joules = work.accumulates * (adding + each) + work.multiplications * (adding + known.picojoules["multiplication"] + each)
    return 1e-12 * (joules + moved * known.picojoules["memory"])
