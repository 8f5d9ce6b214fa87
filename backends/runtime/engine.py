"""Protocols of engines: an engine runs a compiled network for a session (:class:`snnc.backends.session.BackendSession`)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias, TypeGuard, runtime_checkable

import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
SKIPPED: Final = "skipped_updates"
"""Counter of updates that loss scaling skipped because a gradient was not finite."""
Initial: TypeAlias = Mapping[tuple[str, str], Array]
"""(population id, name of a state in the kernel, or of an output buffer) -> [B, n]: values before step 0."""


@dataclass(frozen=True)
class OptimizerValues:
    """The state of an optimiser between updates."""

    updates: int
    moments: Mapping[str, Mapping[str, Array]]
    """Name of a moment (``"moment1"``, ``"moment2"``) -> parameter name -> array of the parameter's shape."""
    loss_scale: tuple[float, int] | None = None
    """The loss scale, and the number of updates since it last changed; None: the loss is not scaled."""


class Engine(Protocol):
    """A loaded network. Ids and names are those of its step program. Arrays are C-contiguous.

    `steps` and `batch` are the numbers of steps and of samples that it runs; None: any.
    """

    @property
    def steps(self) -> int | None: ...  # noqa: D102

    @property
    def batch(self) -> int | None: ...  # noqa: D102

    def forward(self, inputs: Mapping[str, Array], initial: Initial) -> dict[str, Array]:
        """Run a sequence: input id -> [T, B, *shape] to output id -> [T, B, *shape].

        `initial` contains initial values that differ from the program's.
        """

    def train_batch(self, inputs: Mapping[str, Array], target: Array, learning_rate: float) -> float:
        """Run a sequence forward and backward, change the parameters and return the loss.

        `target` contains class indices [B], or the targets of a :class:`~snnc.compiler.losses.composed.Composed` loss.
        """

    def get_parameters(self) -> dict[str, Array]:
        """Return a copy of all parameters, weights as [outputs, inputs]."""

    def set_parameters(self, values: Mapping[str, Array]) -> None:
        """Set the parameters that `values` names; the state of the optimiser does not change."""

    def counters(self) -> dict[str, int]:
        """Return the backend's counters, for example ``dropped_spikes``."""

    def close(self) -> None:
        """Release the engine's resources."""


@runtime_checkable
class SteppingEngine(Protocol):
    """An engine that can also run one step at a time and keep the state between steps."""

    def reset(self, batch: int, initial: Initial) -> None:
        """Start a sequence of unknown length."""

    def step(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run one step: input id -> [B, *shape] to output id -> [B, *shape]."""


@runtime_checkable
class SelectingEngine(Protocol):
    """An engine that can return some of the parameters or gradients without reading all of them from a device."""

    def parameters_named(self, names: Collection[str]) -> dict[str, Array]:
        """Return a copy of the parameters `names`."""

    def gradients_named(self, names: Collection[str]) -> dict[str, Array]:
        """Return the gradients of the parameters `names` in the last training step."""

    def scaled_gradients_named(self, names: Collection[str]) -> dict[str, Array]:
        """Return the gradients of the parameters `names` in the last backward pass, times the loss scale."""


@runtime_checkable
class BackwardEngine(Engine, Protocol):
    """An engine that returns gradients and adjoints of its last backward pass."""

    def gradients(self) -> dict[str, Array]:
        """Parameter name -> gradient in the last training step."""

    def adjoint_of(self, tensor: str) -> Array:
        """Return the adjoint of a current, [T, B, n]; `tensor` is ``d_<id>`` of a population in ``lowering.statistics.stored_adjoints``."""


@runtime_checkable
class AdjointEngine(BackwardEngine, Protocol):
    """An engine of fixed steps and samples whose program has an ``ExternalLoss``: the caller computes the loss."""

    def run_backward(self, adjoint: Array) -> None:
        """Run backward from the last :meth:`forward`; `adjoint` is the adjoint of the output that the loss reads: [T, B, n]."""


@runtime_checkable
class PrefetchingEngine(Protocol):
    """An engine that receives the inputs of a batch while it runs the previous one."""

    @property
    def accepts_next(self) -> bool:
        """Whether offering batches saves time."""

    def offer(self, inputs: Mapping[str, Array], target: Array | None = None) -> None:
        """Before a batch runs, offer the batch after it, for training if `target` is given.

        If that batch runs with the same objects, the engine uses their values at the time of the offer; otherwise the offer has no effect.
        """


def accepts_next(engine: Engine) -> TypeGuard[PrefetchingEngine]:
    """Return whether an engine benefits from batches offered before they run."""
    return isinstance(engine, PrefetchingEngine) and engine.accepts_next


@runtime_checkable
class TimingEngine(Protocol):
    """An engine whose training steps are kernels that can be timed."""

    def time_kernels(self) -> None:
        """Time the kernels of all training steps from now on."""

    def kernel_times(self) -> dict[str, Any] | None:
        """Return the measured times; None if no step was timed.

        The keys are ``device``, its name; ``updates``, their number; ``steps`` and ``batch`` of the last update; and ``us``, the mean
        microseconds of each planned kernel (None: not timed).
        """


@runtime_checkable
class BoundedEngine(Protocol):
    """An engine that accepts any batch, but can run only as many samples at once as fit in its memory."""

    def max_samples(self, steps: int, batch: int) -> int:
        """Return the number of samples to run at once, from 1 to `batch`."""


def samples_at_once(engine: Engine, steps: int, batch: int) -> int:
    """Return how many of `batch` samples an engine runs at once."""
    if engine.batch is not None:
        return engine.batch
    return engine.max_samples(steps, batch) if isinstance(engine, BoundedEngine) else batch


@runtime_checkable
class GatheringEngine(Protocol):
    """An engine that can run the samples of an update in parts."""

    def train_parts(self, parts: Iterable[tuple[Mapping[str, Array], Array]], samples: int, learning_rate: float) -> float:
        """Make one update from the gradients of all `parts`, which contain `samples` samples; return the mean loss.

        A part is inputs and targets as for :meth:`Engine.train_batch`. The update equals that of the undivided batch up to rounding.
        """


@runtime_checkable
class SplitEngine(BackwardEngine, Protocol):
    """An engine that can compute gradients without an update, and update from them later."""

    def gather_parts(self, parts: Iterable[tuple[Mapping[str, Array], Array]], samples: int, first: int = 0) -> float:
        """Sum the gradients of `parts` without an update; return their share of the mean loss over `samples` samples.

        `first` is the position of the first sample of `parts` in the batch of the update.
        """

    def keep_gradients(self, share: float, *, last: bool) -> None:
        """Add the gradients, times `share`, to those kept for the next update; with `last`, the sum then replaces the gradients.

        An engine of one batch size must satisfy :func:`accumulates`, and `share` is 1 / number of batches.
        """

    def forget_gradients(self) -> None:
        """Discard the kept gradients of an interrupted update."""

    def change_parameters(self, learning_rate: float) -> None:
        """Make one update from the summed gradients."""


@runtime_checkable
class RepeatingEngine(Protocol):
    """An engine that can repeat its last backward pass with new sums for batch normalisations, which only this pass reads (decision 36)."""

    def gather_again(self, samples: int) -> float:
        """Run backward again for the last part of :meth:`SplitEngine.gather_parts`, and replace its gradients; return its loss."""


@dataclass(frozen=True)
class Moments:
    """For each neuron of an output: the mean of `count` values, over samples and steps, and the sum of their squared distances from it."""

    mean: Array
    squares: Array
    count: int


@runtime_checkable
class MeasuringEngine(Protocol):
    """An engine that can compute statistics of some outputs without returning their values."""

    def measure(self, inputs: Mapping[str, Array], initial: Initial) -> tuple[dict[str, Array], dict[str, Moments]]:
        """Run a sequence; return the values of some outputs as :meth:`Engine.forward` does, and only the moments of the others."""


@runtime_checkable
class AccumulatingEngine(Protocol):
    """An engine of one batch size that can sum gradients of several batches before an update."""

    @property
    def accumulates(self) -> bool:
        """Whether its program was compiled with ``accumulate``."""


def profile_of(engine: Engine) -> dict[str, Any]:
    """Return the report of an engine that has the method ``profile``; else an empty one."""
    profile = getattr(engine, "profile", None)
    report: dict[str, Any] = {} if profile is None else profile()
    return report


def accumulates(engine: Engine) -> TypeGuard[GatheringEngine]:
    """Return whether an engine can make one update from several batches."""
    if not isinstance(engine, GatheringEngine):
        return False
    return engine.batch is None or (isinstance(engine, AccumulatingEngine) and engine.accumulates)


@runtime_checkable
class ResumableEngine(Protocol):
    """An engine whose optimiser can be read and set, to continue the training of an earlier run."""

    def get_optimizer(self) -> OptimizerValues:
        """Return a copy of the state of the optimiser."""

    def set_optimizer(self, values: OptimizerValues) -> None:
        """Set the state of the optimiser; `values` contains every moment of every learned parameter."""


@runtime_checkable
class SharingEngine(SplitEngine, GatheringEngine, ResumableEngine, Protocol):
    """An engine whose gradients can be changed between the backward pass and the update, for processes that share a batch."""

    @property
    def device(self) -> int | None:
        """Number of the GPU whose memory addresses it accepts in addition to the host's; None: only the host's."""

    @property
    def fingerprint(self) -> str:
        """A digest of the program, independent of its weights."""

    @property
    def gradient_elements(self) -> int:
        """Total number of gradient elements (float32)."""

    def gradients_to(self, address: int) -> None:
        """Copy all gradients, one after another with the axes of their parameters, to memory at `address`."""

    def gradients_from(self, address: int) -> None:
        """Set all gradients from memory in the layout of :meth:`gradients_to`."""
