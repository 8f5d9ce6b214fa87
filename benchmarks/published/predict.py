"""Predicted cycles, milliseconds and memory of a training step of the published program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from snnc.benchmarks.published.backward import backward
from snnc.benchmarks.published.forward import forward
from snnc.benchmarks.published.layout import PublishedLayout, lay_out
from snnc.benchmarks.published.machine import Machine, Superstep
from snnc.benchmarks.published.memory import memory_by_layer
from snnc.benchmarks.published.net import PublishedNet
from snnc.benchmarks.published.options import PublishedOptions
from snnc.benchmarks.published.update import update
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
    def step_supersteps(self) -> int:
        """Number of steps of the Poplar program in one time step, forward and backward."""
        return sum(step.programs for step in self.supersteps if step.part != "update")

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
