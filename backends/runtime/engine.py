"""The engine protocol: a few primitives over arrays in canonical form; :class:`snnc.backends.session.Session` does the rest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeGuard, runtime_checkable

import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
Initial: TypeAlias = Mapping[tuple[str, str], Array]
"""(population id, canonical state or output buffer) -> [B, n]: what a state is, or a delayed output shows, before step 0."""


@dataclass(frozen=True)
class OptimizerValues:
    """What an optimiser keeps from one update to the next.

    Attributes
    ----------
    updates
        How many were made; Adam's corrections depend on it.
    moments
        ``"moment1"``, ``"moment2"`` -> parameter name -> array of the parameter's shape. SGD without momentum keeps none.
    """

    updates: int
    moments: Mapping[str, Mapping[str, Array]]


class Engine(Protocol):
    """A loaded network. Ids and parameter names are those of its step program; arrays are C-contiguous.

    Attributes
    ----------
    steps
        T of the sequences that it takes; None takes any.
    batch
        B that it takes; None takes any.
    """

    @property
    def steps(self) -> int | None: ...  # noqa: D102

    @property
    def batch(self) -> int | None: ...  # noqa: D102

    def forward(self, inputs: Mapping[str, Array], initial: Initial) -> dict[str, Array]:
        """Run a sequence.

        Parameters
        ----------
        inputs
            Input id -> [T, B, *shape].
        initial
            Initial values where they differ from the program's.

        Returns
        -------
        dict
            Output id -> [T, B, *shape], every step.
        """
        ...

    def train_batch(self, inputs: Mapping[str, Array], target: Array, learning_rate: float) -> float:
        """Run a sequence forward and back, change the parameters and return the loss; `target` is [B], class indices."""
        ...

    def get_parameters(self) -> dict[str, Array]:
        """Return a copy of all parameters, weights as [outputs, inputs]."""
        ...

    def set_parameters(self, values: Mapping[str, Array]) -> None:
        """Set the parameters that `values` names; the state of the optimiser stays."""
        ...

    def counters(self) -> dict[str, int]:
        """Return what the backend counted, for example ``dropped_spikes``."""
        ...

    def close(self) -> None:
        """Give back what the engine holds."""
        ...


@runtime_checkable
class SteppingEngine(Protocol):
    """An engine that can also run one step at a time and keep the state in between."""

    def reset(self, batch: int, initial: Initial) -> None:
        """Start a sequence of unknown length."""
        ...

    def step(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run one step: input id -> [B, *shape] to output id -> [B, *shape]."""
        ...


@runtime_checkable
class GradientEngine(Protocol):
    """An engine that shows the gradients of the last training step, for tests."""

    def gradients(self) -> dict[str, Array]:
        """Parameter name -> gradient."""
        ...


@runtime_checkable
class AheadEngine(Protocol):
    """An engine that takes the inputs of a batch while it runs the one before."""

    @property
    def takes_ahead(self) -> bool:
        """Whether it gains by that."""
        ...

    def offer(self, inputs: Mapping[str, Array], target: Array | None = None) -> None:
        """Give the batch that follows the next one: with a `target`, of training. The next one but one that is run with the very
        same objects takes them as they were when they were offered; any other batch may be run in its stead."""
        ...


def takes_ahead(engine: Engine) -> TypeGuard[AheadEngine]:
    """Tell whether an engine gains by batches that are offered before they run."""
    return isinstance(engine, AheadEngine) and engine.takes_ahead


@runtime_checkable
class BoundedEngine(Protocol):
    """An engine that takes any batch, but of runs only so many samples at once as its memory holds."""

    def most_samples(self, steps: int, batch: int) -> int:
        """Return how many of `batch` samples to run at once, 1 or more."""
        ...


def samples_at_once(engine: Engine, steps: int, batch: int) -> int:
    """Return how many of `batch` samples an engine runs at once."""
    if engine.batch is not None:
        return engine.batch
    return engine.most_samples(steps, batch) if isinstance(engine, BoundedEngine) else batch


@runtime_checkable
class GatheringEngine(Protocol):
    """An engine that can see the samples of an update in parts."""

    def train_parts(self, parts: Iterable[tuple[Mapping[str, Array], Array]], samples: int, learning_rate: float) -> float:
        """Make one update from the gradients of all `parts`, inputs and targets as for :meth:`Engine.train_batch`; return the loss.

        The loss is averaged over `samples`, which is how many the parts have together: the update is that of all of them at once.
        """
        ...


@runtime_checkable
class ResumableEngine(Protocol):
    """An engine whose optimiser can be read and set, so that training goes on where another stopped."""

    def get_optimizer(self) -> OptimizerValues:
        """Return a copy of what the optimiser keeps."""
        ...

    def set_optimizer(self, values: OptimizerValues) -> None:
        """Set all that the optimiser keeps; `values` names every learned parameter and moment."""
        ...


@runtime_checkable
class SharingEngine(Engine, GatheringEngine, ResumableEngine, Protocol):
    """An engine that lets gradients be changed between the backward pass and the update, as processes do that share a batch."""

    @property
    def device(self) -> int | None:
        """Number of the GPU whose memory it takes addresses of, beside the host's; None: the host's alone."""
        ...

    @property
    def fingerprint(self) -> str:
        """The same text wherever the same program runs, whatever its weights."""
        ...

    @property
    def gradient_elements(self) -> int:
        """How many numbers (float32) all gradients hold together."""
        ...

    def gather_parts(self, parts: Iterable[tuple[Mapping[str, Array], Array]], samples: int) -> float:
        """Sum the gradients of `parts` and change no parameter; return the loss.

        The loss is averaged over `samples`, of which the parts may be some: theirs is a share of it.
        """
        ...

    def gradients_to(self, address: int) -> None:
        """Copy all gradients to memory, one behind the other in the model's orientation; they are there when this returns."""
        ...

    def gradients_from(self, address: int) -> None:
        """Set all gradients from memory that holds them as :meth:`gradients_to` does, which may change when this returns."""
        ...

    def change_parameters(self, learning_rate: float) -> None:
        """Make one update from the gradients that were gathered or set."""
        ...
