"""A benchmark: a network, the size of its training step, its activity and its target machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from snnc.benchmarks.published import PublishedNet, PublishedOptions
from snnc.compiler.ir.graph import Array
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.losses import parse_loss
from snnc.compiler.lowering.lower import lower
from snnc.compiler.neurons.surrogates.library import parse_surrogate
from snnc.frontends.dsl.network import Network
from snnc.options.compile_options import CompileOptions, options
from snnc.options.optimizers import parse_optimizer

Value = TypeVar("Value")


@dataclass(frozen=True)
class Benchmark:
    """A network to map."""

    name: str
    suite: str
    """One of :data:`snnc.benchmarks.nets.SUITES`."""
    target: str
    """Name of the machine."""
    chips: int
    steps: int
    batch: int
    loss: str
    optimizer: str
    surrogate: str
    """Loss, optimiser and surrogate as on the command line."""
    build: Callable[[], Network]
    activity: Mapping[str, float]
    """Mean fraction of values that are spikes in a step, by name of the input or population."""
    activity_source: str
    """Origin of `activity`, such as ``"assumed"`` or ``"simulated: moving pen strokes"``."""
    capacity: Mapping[str, int]
    """Maximum number of ids per sample that the published program (:mod:`snnc.benchmarks.published`) sends in a step, by name of the input
    or population; empty in the suite ``everyday``."""
    published: PublishedNet | None
    """The network, or the most similar one that the published program can run, for
    :func:`~snnc.benchmarks.published.predict_published`; None if there is none."""
    gradient_window: tuple[float, float] | None = None
    """Range of distances to the threshold in which neurons receive a gradient; None: all neurons receive one."""
    support: Mapping[str, float] = field(default_factory=dict)
    """Mean fraction of neurons that receive a gradient in a step, by name of the population."""
    counts: Mapping[str, Array] = field(default_factory=dict)
    support_counts: Mapping[str, Array] = field(default_factory=dict)
    """Numbers of spikes, and of neurons that receive a gradient, in each step and sample [T, B]; empty without a simulation."""
    build_dense: Callable[[], Network] | None = None
    """Function that builds the network with values in place of spikes; None if the network has no such form."""

    @property
    def published_options(self) -> PublishedOptions:
        """Options of the published program: the surrogate ran on one tile in the logged runs, and on every tile in later ones."""
        return PublishedOptions(surrogate="one tile" if self.suite == "logged" else "every tile")

    def program(self) -> StepProgram:
        """Build the network and lower it for training."""
        return lower(
            self.build().graph(),
            loss=parse_loss(self.loss),
            optimizer=parse_optimizer(self.optimizer),
            surrogate=parse_surrogate(self.surrogate),
            gradient_window=self.gradient_window,
            steps=self.steps,
        )

    def options(self, target: str) -> CompileOptions:
        """Return the options of a compilation for `target`."""
        return options(
            target,
            steps=self.steps,
            batch=self.batch,
            loss=self.loss,
            optimizer=self.optimizer,
            surrogate=self.surrogate,
            gradient_window=self.gradient_window,
        )


def by_buffer(program: StepProgram, values: Mapping[str, Value]) -> dict[str, Value]:
    """Return `values`, which are given by the name of an input or population, by StepProgram buffer."""
    return {buffer: values[name] for name, buffer in spiking_buffers(program) if name in values}


def spiking_buffers(program: StepProgram) -> tuple[tuple[str, str], ...]:
    """Return the label and the buffer of each input and population that sends spikes; the label is the author's name for it."""
    labels = {i.id: i.label for i in program.inputs} | {p.id: p.label for p in program.populations}
    sources = {c.source_buffer: c.source for c in program.connections if program.buffers[c.source_buffer].kind == "spikes"}
    return tuple((labels[source], buffer) for buffer, source in sources.items())
