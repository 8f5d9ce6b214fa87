"""The predicted time of a training step on a GPU, from its launches and rates measured on one card."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from snnc.backends.cuda.schedule.cores import MOST_NEURONS, core_seconds
from snnc.backends.cuda.schedule.launches import NARROW, SPIKE_PARTS, Launch, columns_of_tile, filled, read_launches, slice_rows
from snnc.backends.cuda.schedule.teams import TeamWork, team_seconds
from snnc.compiler.ir.arrays.sizes import FLOAT


@dataclass(frozen=True)
class Card:
    """Rates of a GPU.

    Attributes
    ----------
    name
        Its name, as the driver reports it.
    processors, clock
        Multiprocessors, and cycles per second of them.
    memory
        Bytes per second that kernels read and write, added up.
    product, group_product, convolution, convolution_gradient
        Multiplications of fragments that kernels reach, per second and multiprocessor; ``group_product``: those of groups of four warps.
    tile
        Seconds of a product's tile besides its multiplications: its first copies, its results.
    gathered
        Numbers per second that all multiprocessors gather into the fragments of a convolution.
    table
        Bytes per second that connections with tables read and write.
    launch, step
        Seconds of a kernel's start and end inside a graph, and of a neuron's step in a walk.
    host
        Seconds of a training step during which the device waits for the host.
    """

    name: str
    processors: int
    clock: float
    memory: float
    product: float
    group_product: float
    tile: float
    convolution: float
    convolution_gradient: float
    gathered: float
    table: float
    launch: float
    step: float
    host: float


H100: Final = Card(
    "NVIDIA H100 SXM",
    processors=132,
    clock=1.755e9,
    memory=2.5e12,
    product=0.5 * 1213 * 1.755e9,
    group_product=0.6 * 2048 * 1.755e9,
    tile=1.7e-6,
    convolution=0.88e12,
    convolution_gradient=0.32e12,
    gathered=0.75e12,
    table=1.2e12,
    launch=2.5e-6,
    step=0.08e-6,
    host=60e-6,
)
"""Measured on one H100 on 2026-11-23: 1,213 multiplications of bfloat16 per cycle and multiprocessor from registers; launches
in a graph (0.9 us, and the end of a kernel); convolutions and tables. Assumed: that products reach half of this rate, and by groups of
warps 0.6 of the 2,048 of the data sheet (a prototype's products of W1 at B = 1024 and of W2 took 0.68 to 0.84); a tile's 3,000 cycles
besides; the share of memory's 3.0 TB/s; a step of a walk; the host."""


@dataclass(frozen=True)
class Predicted:
    """A launch, its seconds, its limiting factor, and the bytes that it reads and writes."""

    launch: Launch
    seconds: float
    by: str
    bytes: int

    def to_data(self) -> dict[str, Any]:
        """Return it as JSON types."""
        launch = self.launch
        return {"kind": launch.kind, "way": launch.way, "of": launch.of, "bytes": self.bytes, "us": 1e6 * self.seconds, "by": self.by}


def predict(launches: Sequence[Launch], steps: int, batch: int, card: Card = H100) -> list[Predicted]:
    """Return the seconds of each launch for `steps` steps of `batch` samples."""
    return [_predicted(launch, steps, batch, card) for launch in launches]


def seconds_of(found: Sequence[Predicted], card: Card = H100) -> float:
    """Return the seconds of a step, including the host's part."""
    return sum(one.seconds for one in found) + card.host


def predicted_step(description: Mapping[str, Any], steps: int, batch: int, card: Card = H100) -> dict[str, Any] | None:
    """Return the predicted step of a project on a card, as JSON types.

    Parameters
    ----------
    description
        ``project.json`` of the project.
    steps, batch
        Sizes of the step.
    card
        Rates of the card.

    Returns
    -------
    dict or None
        Name of the card, seconds of the step, those spent waiting for the host, and the launches in their order; None if the project
        does not describe its launches.
    """
    launches = read_launches(description.get("launches"))
    if launches is None:
        return None
    found = predict(launches, steps, batch, card)
    return {
        "card": card.name,
        "seconds": seconds_of(found, card),
        "host_seconds": card.host,
        "kernels": [one.to_data() for one in found],
    }


def _predicted(launch: Launch, steps: int, batch: int, card: Card) -> Predicted:
    rows = steps * batch
    moved = rows * launch.row_bytes + launch.fixed_bytes
    bytes_ = moved / card.memory
    match launch.kind:
        case "product":
            bounds = {"memory": bytes_, "tensor cores": _product(launch, rows, card)}
        case "convolution":
            work = rows * launch.positions * launch.depth
            rate = card.convolution_gradient if launch.way == "gradient" else card.convolution
            products = work * launch.width * launch.parts / (rate * card.processors)
            gathers = 0.0 if launch.way == "backward" else work / card.gathered
            # Results are written after the sums, not at the same time.
            bounds = {"tensor cores": products + bytes_, "gathers": gathers + bytes_}
        case "table":
            bounds = {"memory": moved / card.table}
        case "walk":
            bounds = {
                "memory": bytes_,
                "steps": steps * card.step * math.ceil(batch * filled(launch.neurons, 32) / (card.processors * 2048)),
            }
        case "core" if launch.neurons > MOST_NEURONS:
            every, back = launch.neurons**2, launch.way == "backward"
            team = TeamWork(1, launch.neurons, 0 if back else every, every if back else 0, launch.neurons if back else 0)
            bounds = {"steps": team_seconds(team, batch, steps)}
        case "core":
            bounds = {"steps": core_seconds(launch.neurons, batch, steps, back=launch.way == "backward", parts=launch.parts)}
        case "feedback":
            team = TeamWork(launch.levels, launch.neurons, launch.listed, launch.weights, launch.depth)
            bounds = {"steps": team_seconds(team, batch, steps)}
        case _:
            bounds = {"memory": bytes_}
    by = max(bounds, key=lambda name: bounds[name])
    return Predicted(launch, card.launch + bounds[by], by, moved)


def _product(launch: Launch, rows: int, card: Card) -> float:
    """Seconds of a product's tiles, in whole rounds over the multiprocessors; those of a gradient are cut into slices that fill them."""
    across = columns_of_tile(launch.width)
    # A gradient whose source is numbers has parts of both factors in shared memory: single warps multiply.
    groups = across > NARROW and (launch.way != "gradient" or launch.parts == SPIKE_PARTS)
    rate, beside = (card.group_product, card.tile) if groups else (card.product, 0.0)
    if launch.way == "gradient":
        length = slice_rows(rows, launch.depth, launch.width)
        slices, numbers = math.ceil(rows / length), launch.depth * launch.width
        rounds = math.ceil(math.ceil(launch.depth / 128) * math.ceil(launch.width / across) * slices / card.processors)
        # Slices are written here, and read by the update.
        return rounds * (length * 128 * across * launch.parts / rate + beside) + 2 * FLOAT * slices * numbers / card.memory
    rounds = math.ceil(math.ceil(rows / 128) * math.ceil(launch.width / across) / card.processors)
    return rounds * (128 * across * filled(launch.depth, 32) * launch.parts / rate + beside)
