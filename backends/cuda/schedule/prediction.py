"""Prediction of the time of a training step on a GPU, from its launches and from rates measured on one card."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from snnc.backends.cuda.schedule.cores import MAX_NEURONS, core_processors, core_seconds
from snnc.backends.cuda.schedule.launches import NARROW, SPIKE_PARTS, TILE, Launch, columns_of_tile, read_launches, rounded_up, slice_rows
from snnc.backends.cuda.schedule.overlap import LARGEST_CLUSTER
from snnc.backends.cuda.schedule.teams import team_seconds
from snnc.compiler.ir.arrays.sizes import FLOAT


@dataclass(frozen=True)
class Card:
    """Rates of a GPU, by default those measured on one H100 on 2026-11-23 (docs/decisions/0068-rates-from-differences.md).

    Measured with separate small kernels: 1,213 bfloat16 multiplications per cycle and multiprocessor from registers; rows of 128 bytes from
    L2 (22 to 25 bytes per cycle); a block's barrier (103 cycles); launches in a graph (0.9 us to start, the rest of `launch` to end a
    kernel); convolutions and tables. Measured with the kernels of a prototype: warpgroups multiply 3.5 T per second and multiprocessor;
    blocks need 18 to 24 us to load and split 49,152 weights; an update moves 104 MiB in 37.0 us. Assumed: products by single warps reach
    half of the rate from registers; 3,000 more cycles per tile; a step of a walk; the time of the host.
    """

    name: str = "NVIDIA H100 SXM"
    """Name, as the driver reports it."""
    processors: int = 132
    """Number of multiprocessors."""
    memory: float = 3.1e12
    """Bytes per second that kernels read and write in total."""
    product: float = 0.5 * 1213 * 1.755e9
    """Multiplications on tensor cores by single warps, per second and multiprocessor."""
    group_product: float = 3.5e12
    """The same by warpgroups (four warps that multiply together)."""
    turn: float = 103 / 1.755e9
    """Additional seconds of a product by warpgroups per barrier, one for every 32 or 64 summands of a result."""
    tile: float = 1.7e-6
    """Additional seconds of a product by warpgroups per tile of the result matrix, to copy its first factors and to write its results."""
    split: float = 2.5e9
    """Weights per second that a block splits into 16-bit parts."""
    rows: float = 23 * 1.755e9
    """Bytes per second of rows of 128 bytes that a block reads from L2."""
    convolution: float = 0.88e12
    convolution_gradient: float = 0.32e12
    """Multiplications on tensor cores in convolutions and in their gradients, per second and multiprocessor."""
    gathered: float = 0.75e12
    """Values per second that all multiprocessors gather into the fragments of a convolution."""
    table: float = 1.2e12
    """Bytes per second that connections with tables read and write."""
    launch: float = 2.5e-6
    """Seconds to start and end a kernel inside a graph."""
    step: float = 0.08e-6
    """Seconds per step of a walk, which runs a population without recurrence."""
    host: float = 60e-6
    """Seconds of a training step in which the device waits for the host."""


H100: Final = Card()
_THREADS: Final = 2048
"""Number of threads that a multiprocessor runs at a time."""


@dataclass(frozen=True)
class Predicted:
    """A launch with its predicted time."""

    launch: Launch
    seconds: float
    """Duration if no other kernel runs at the same time."""
    by: str
    """Resource that limits the launch, such as ``"memory"``."""
    bytes: int
    """Bytes read and written."""
    idle: int = 0
    """Number of multiprocessors that the launch leaves idle, if it is a core with at most `LARGEST_CLUSTER` neurons; otherwise 0."""


def predict(launches: Sequence[Launch], steps: int, batch: int, card: Card = H100) -> list[Predicted]:
    """Return the seconds of each launch for `steps` steps of `batch` samples."""
    # A weight gradient is one partial sum per slice of the rows (see `slice_rows`); the update also reads and adds these.
    products = [one for one in launches if one.kind == "product" and one.way == "gradient"]
    sliced = sum(FLOAT * _slices(one, steps * batch) * one.depth * one.width for one in products)
    with_slices = [replace(one, fixed_bytes=one.fixed_bytes + sliced) if one.kind == "update" else one for one in launches]
    return [replace(_predicted(one, steps, batch, card), launch=launch) for one, launch in zip(with_slices, launches, strict=True)]


def seconds_of(predicted: Sequence[Predicted], card: Card = H100) -> float:
    """Return the seconds of a training step, including the time in which the device waits for the host."""
    return sum(one.seconds for one in predicted) - _overlapped(predicted, card) + card.host


def _overlapped(predicted: Sequence[Predicted], card: Card) -> float:
    """Return the seconds saved by gradients that run on the multiprocessors that kernels of recurrent populations (cores) leave idle."""
    saved = 0.0
    for core in predicted:
        if core.launch.kind == "core" and core.launch.way == "backward":
            beside = sum(one.seconds for one in predicted if one.launch.during and one.launch.during == core.launch.of)
            saved += min(beside, core.seconds * core.idle / card.processors)
    return saved


def predicted_step(description: Mapping[str, Any], steps: int, batch: int) -> dict[str, Any] | None:
    """Return the prediction for a training step on an H100, as JSON types: seconds of the step, and of each launch.

    `description` is the project's ``project.json``; the result is None if it does not describe the launches.
    """
    launches = read_launches(description.get("launches"))
    if launches is None:
        return None
    predicted = predict(launches, steps, batch)
    return {
        "card": H100.name,
        "seconds": seconds_of(predicted),
        "host_seconds": H100.host,
        "kernels": [
            {"kind": one.launch.kind, "way": one.launch.way, "of": one.launch.of, "bytes": one.bytes, "us": 1e6 * one.seconds, "by": one.by}
            for one in predicted
        ],
    }


def _predicted(launch: Launch, steps: int, batch: int, card: Card) -> Predicted:
    """Return the predicted time of a launch: its start, plus the longest of the times that its resources need."""
    rows = steps * batch
    moved = rows * launch.row_bytes + launch.fixed_bytes
    transfer = moved / card.memory
    match launch.kind:
        case "product":
            bounds = {"memory": transfer, "tensor cores": _product(launch, rows, card)}
        case "convolution":
            work = rows * launch.positions * launch.depth
            rate = card.convolution_gradient if launch.way == "gradient" else card.convolution
            products = work * launch.width * launch.parts / (rate * card.processors)
            gathers = 0.0 if launch.way == "backward" else work / card.gathered
            # Results are written after the sums, not at the same time.
            bounds = {"tensor cores": products + transfer, "gathers": gathers + transfer}
        case "prepare":
            # Here `depth` is the number of weights that one block splits, and `width` the number that it reads before, to find maxima.
            block = FLOAT * launch.width / card.rows + launch.depth / card.split
            bounds = {"memory": transfer, "splitting": max(block, launch.weights / (card.split * card.processors))}
        case "table":
            bounds = {"memory": moved / card.table}
        case "walk":
            rounds = math.ceil(batch * rounded_up(launch.neurons, 32) / (card.processors * _THREADS))
            bounds = {"memory": transfer, "steps": steps * card.step * rounds}
        case "core" if launch.neurons > MAX_NEURONS:  # runs as feedback with one barrier per step; forward, it reads weights of spikes only
            if launch.way == "backward":
                team = replace(launch, levels=1, weights=launch.neurons**2, depth=launch.neurons)
            else:
                team = replace(launch, levels=1, listed=launch.neurons**2)
            bounds = {"steps": team_seconds(team, batch, steps)}
        case "core":
            bounds = {"steps": core_seconds(launch.neurons, batch, steps, back=launch.way == "backward", parts=launch.parts)}
        case "feedback":
            bounds = {"steps": team_seconds(launch, batch, steps)}
        case _:
            bounds = {"memory": transfer}
    by = max(bounds, key=lambda name: bounds[name])
    idle = 0
    if launch.kind == "core" and launch.neurons <= LARGEST_CLUSTER:
        used = core_processors(launch.neurons, batch, steps, back=launch.way == "backward", parts=launch.parts)
        idle = max(0, card.processors - used)
    return Predicted(launch, card.launch + bounds[by], by, moved, idle)


def _slices(launch: Launch, rows: int) -> int:
    return math.ceil(rows / slice_rows(rows, launch.depth, launch.width))


def _product(launch: Launch, rows: int, card: Card) -> float:
    """Return the seconds of the tiles of a product; one tile runs on each multiprocessor at a time. A gradient has tiles for each slice."""
    across = columns_of_tile(launch.width)
    # If the source of a gradient is not spikes, 16-bit parts of both factors are in shared memory, and single warps multiply.
    groups = across > NARROW and (launch.way != "gradient" or launch.parts == SPIKE_PARTS)
    rate, turn, per_tile = (card.group_product, card.turn, card.tile) if groups else (card.product, 0.0, 0.0)
    # Depth between two barriers, as in ``whole_warpgroups.cuh``; it is shorter for real-valued rows.
    depth = 64 if launch.way == "gradient" or launch.parts <= SPIKE_PARTS else 32
    if launch.way == "gradient":
        length = slice_rows(rows, launch.depth, launch.width)
        slices, numbers = _slices(launch, rows), launch.depth * launch.width
        rounds = math.ceil(math.ceil(launch.depth / TILE) * math.ceil(launch.width / across) * slices / card.processors)
        products = length * TILE * across * launch.parts / rate + math.ceil(length / depth) * turn
        return rounds * (products + per_tile) + FLOAT * slices * numbers / card.memory
    rounds = math.ceil(math.ceil(rows / TILE) * math.ceil(launch.width / across) / card.processors)
    turns = math.ceil(launch.depth / depth)
    return rounds * (TILE * across * rounded_up(launch.depth, 32) * launch.parts / rate + turns * turn + per_tile)
