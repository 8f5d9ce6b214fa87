"""Predicted cycles, milliseconds and memory of a training step of the published program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from snnc.benchmarks.published.backward import backward
from snnc.benchmarks.published.forward import forward
from snnc.benchmarks.published.layout import PublishedLayout, lay_out, slice_share
from snnc.benchmarks.published.machine import Machine, Superstep
from snnc.benchmarks.published.memory import memory_by_layer
from snnc.benchmarks.published.net import PRIVATE_COPIES, PublishedNet
from snnc.benchmarks.published.options import ADAM_VECTOR, HOST_BYTES_PER_SECOND, LOCAL_COPY_BYTES, SGD_VECTOR, PublishedOptions
from snnc.compiler.ir.arrays.sizes import FLOAT
from snnc.compiler.machines.target import Target


@dataclass(frozen=True)
class PublishedPrediction:
    """Predicted cost of one training step of `net` in the published program."""

    net: PublishedNet
    target: Target
    options: PublishedOptions
    layout: PublishedLayout
    """Range of tiles of each layer."""
    supersteps: tuple[Superstep, ...]
    """Every kind of superstep, with the number of its runs."""
    memory: tuple[Mapping[str, int], ...]
    """For each layer, bytes by category of its fullest tile."""

    @cached_property
    def step_cycles(self) -> float:
        """Tile cycles of one training step, predicted."""
        return sum(step.cycles for step in self.supersteps)

    def milliseconds(self) -> float:
        """Return the predicted milliseconds of a training step."""
        return 1e3 * self.step_cycles / self.target.clock_hz

    @property
    def categories(self) -> dict[str, float]:
        """Tile cycles of one training step by category."""
        cycles: dict[str, float] = {}
        for step in self.supersteps:
            cycles[step.category] = cycles.get(step.category, 0.0) + step.cycles
        return cycles

    @property
    def program_steps_per_time_step(self) -> int:
        """Number of steps of the Poplar program (such as compute sets or copies) in one time step, forward and backward."""
        return sum(step.program_steps for step in self.supersteps if step.part != "update")

    @property
    def peak_tile_bytes(self) -> int:
        """Bytes of the fullest tile, predicted."""
        return max(sum(held.values()) for held in self.memory)

    @property
    def fits(self) -> bool:
        """Whether the data of every tile fits into its memory."""
        return self.peak_tile_bytes <= self.target.tile_bytes


def predict_published(net: PublishedNet, target: Target, options: PublishedOptions | None = None) -> PublishedPrediction:
    """Predict one training step of `net`, whose layers fill as many chips of `target` as they need.

    Raise PublishedLayoutError if they do not fit.
    """
    chosen = options or PublishedOptions()
    machine = Machine(net, lay_out(net, target), target, chosen)
    supersteps = (*forward(machine), *backward(machine), *update(machine))
    return PublishedPrediction(net, target, chosen, machine.layout, supersteps, memory_by_layer(machine, supersteps))


def update(machine: Machine) -> tuple[Superstep, ...]:
    """Return the supersteps that run once in a training step: casts, sums of private gradients, the optimiser, the host.

    Not included: transposes, the loss (computed outside the program), and costs that occur once per epoch.
    """
    net, tiles = machine.net, machine.tiles
    # The host sends the input ids and counts of all steps as 4-byte values.
    size = FLOAT * net.steps * net.batch * (net.input_capacity + 1)
    streamed = size / HOST_BYTES_PER_SECOND * machine.target.clock_hz
    # The ids and counts of all steps, of the inputs and of every layer, are cast to integers and back.
    stored = [slice_share(net.batch * net.input_capacity, tiles), slice_share(net.batch, tiles)]
    stored += [n for layer in net.layers for n in (slice_share(net.batch * layer.capacity, tiles), slice_share(2 * net.batch, tiles))]
    casts = [n * net.steps for n in 2 * stored]
    weights = [before * machine.per_tile(i) for i, before in enumerate(net.widths[:-1])]
    zeroed = [PRIVATE_COPIES * FLOAT * n / LOCAL_COPY_BYTES for n in weights]
    optimiser = ADAM_VECTOR if net.moments else SGD_VECTOR
    return (
        machine.step("inputs from the host", "host", "update", compute=streamed, runs=1),
        machine.step("casts", "update", "update", compute=sum(map(machine.elementwise, casts)), runs=1, program_steps=len(casts)),
        machine.step(
            "zero private gradients", "update", "update", compute=machine.one_by_one(zeroed), runs=1, program_steps=machine.serial
        ),
        machine.step("sum private gradients", "update", "update", compute=machine.elementwise(PRIVATE_COPIES * max(weights)), runs=1),
        machine.step(
            "optimiser",
            "update",
            "update",
            compute=machine.one_by_one([machine.elementwise(n, optimiser) for n in weights]),
            runs=1,
            program_steps=machine.serial,
        ),
    )
