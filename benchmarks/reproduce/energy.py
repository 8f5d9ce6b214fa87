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
"""Suffixes of a row's keys: products counted with events (for spikes only), and without events (for all values)."""
LANES: Final = 8
"""Number of float32 values in a vector instruction (AVX2)."""
HISTORY_ROLES: Final = ("state", "output", "saved")
"""Roles of the buffers that the backward pass reads at every time step."""
WORDS: Final = 2
"""Minimum number of 32-bit accesses to local memory per product: to a weight, and to a sum or gradient."""


@dataclass(frozen=True)
class Energies:
    """Published energies of operations in picojoules, and powers of devices in watts, by name, with their sources."""

    picojoules: dict[str, float]
    watts: dict[str, float]
    sources: dict[str, str]


@dataclass(frozen=True)
class SynapticWork:
    """Numbers of products with weights in a training step of a batch."""

    accumulates: float
    """Number of products of a source's output: with weights in the forward pass, and with deltas for weight gradients. If the output is a
    spike, such a product is an addition."""
    multiplications: float
    """Number of products of deltas and weights, which give the gradients of populations."""


def energies() -> Energies:
    """Return the numbers of ``energy.toml``."""
    data = tomllib.loads(files("snnc.benchmarks.reproduce").joinpath("energy.toml").read_text())
    return Energies(
        {one["name"]: float(one["picojoules"]) for one in data["operation"]},
        {one["name"]: float(one["watts"]) for one in data["device"]},
        {one["name"]: one["source"] for one in (*data["operation"], *data["device"])},
    )


def synaptic_work(program: StepProgram, activity: Mapping[str, float], steps: int, batch: int, *, events: bool) -> SynapticWork:
    """Count the products of a network's dense connections.

    With `events`, the accumulates of a source in `activity` are counted for its spikes only. `activity` has the mean fraction of values
    that are spikes in a step, by buffer. Neurons, the optimiser and data movement between tiles or to other memory are not counted.
    Raise ValueError if a connection with weights is not dense.
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
    """Return the number of 32-bit words moved between caches and main memory in a training step.

    The data of one time step and the weights are assumed to fit into the caches. Data that the backward pass reads for every time step is
    written once and read once; a trained parameter, its gradient and two moments of the optimiser are read once and written once.
    """
    stored = [buffer for buffer in program.buffers.values() if buffer.lifetime == "sequence" and buffer.role in HISTORY_ROLES]
    histories = sum(math.prod(buffer.shape) for buffer in stored)
    parameters = sum(p.value.size for p in program.parameters.values() if p.learnable)
    return 2.0 * histories * steps * batch + 2.0 * 4 * parameters


def count_energy(name: str) -> dict[str, Any]:
    """Return the row of a network: the numbers of products of a training step, for spikes only and for all values, and of moved words."""
    problem = matched_problem(name)
    program, steps, batch = problem.program, problem.options.steps or 1, problem.options.batch or 1
    activity = measure_activity(program, problem.inputs, name).mean
    row: dict[str, Any] = {"net": name, "moved_words": moved_words(program, steps, batch)}
    for events, suffix in COUNTED.items():
        work = synaptic_work(program, activity, steps, batch, events=events)
        row |= {f"accumulates {suffix}": work.accumulates, f"multiplications {suffix}": work.multiplications}
    return row


def counts_of(row: Mapping[str, Any], *, events: bool) -> SynapticWork:
    """Return the counts of a row of :func:`count_energy`."""
    return SynapticWork(row[f"accumulates {COUNTED[events]}"], row[f"multiplications {COUNTED[events]}"])


def product_joules(work: SynapticWork, known: Energies, *, events: bool) -> float:
    """Return the joules of the products alone, each with two 32-bit accesses to local memory.

    With `events`, an accumulate is one addition; otherwise it is a multiplication and an addition.
    """
    product = known.picojoules["addition"] + known.picojoules["multiplication"]
    accesses = WORDS * known.picojoules["access"]
    each = known.picojoules["addition"] if events else product
    return 1e-12 * (work.accumulates * (each + accesses) + work.multiplications * (product + accesses))


def processor_joules(work: SynapticWork, moved: float, known: Energies) -> float:
    """Return the joules on a CPU of `work` counted with events: arithmetic, instructions, caches, and `moved` words of main memory.

    Every product makes two 32-bit accesses to a cache of 1 MiB, and eight products share one instruction (AVX2). Neurons, searches for
    spikes and waiting are not included, so a CPU at 45 nm takes more.
    """
    each = WORDS * known.picojoules["cache"] + known.picojoules["instruction"] / LANES
    adding = known.picojoules["addition"]
    joules = work.accumulates * (adding + each) + work.multiplications * (adding + known.picojoules["multiplication"] + each)
    return 1e-12 * (joules + moved * known.picojoules["memory"])
