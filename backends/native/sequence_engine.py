"""Base class of engines for native programs that accept any number of steps and samples, with checkpoints and gradient accumulation."""

from __future__ import annotations

import json
import math
import warnings
from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from snnc.backends.codegen.constants import WEIGHTS
from snnc.backends.native.engine import Gather, NativeEngine
from snnc.backends.native.library import Role
from snnc.backends.native.memory import (
    UNOBSERVED,
    Needs,
    ObservedActivity,
    least_bytes,
    least_segment,
    predicted_bytes,
    run_bytes,
    segment_for,
)
from snnc.backends.runtime.engine import SKIPPED, Array, Initial
from snnc.backends.runtime.errors import MemoryNeededError
from snnc.backends.runtime.events import Events, InputValues


class SequenceEngine(NativeEngine):
    """Runs the shared library of a project with any number of steps and samples. See :class:`snnc.backends.runtime.engine.Engine`.

    `memory` is the maximum number of bytes of a training step. If the step would need more, checkpoints are used, so that histories cover
    one segment at a time. If the loss of the project is an ``ExternalLoss``, the caller (for example PyTorch's autograd) computes the loss
    between :meth:`run_forward` and :meth:`run_backward`.
    """

    accepts_events = True
    """Inputs may be :class:`~snnc.backends.runtime.events.Events`."""
    _shapeless: tuple[str, ...] = ("resume", "autograd", "gather", "whole")  # whole: samples of the update, 0 if they are those of the step
    """Settings that do not affect the shape of any tensor."""
    batch: int | None = None
    device: int | None = None
    """Number of the GPU whose memory addresses the engine accepts; None: host addresses only."""

    def __init__(self, library: Path, folder: Path, memory: int | None = None) -> None:
        super().__init__(library, folder)
        self.steps: int | None = self.description["fixed_steps"]
        self.memory = memory
        self.segment: int | None = None
        """Requested number of steps between two checkpoints; 0: no checkpoints; None: chosen so that the memory bound is met."""
        self._sizes: dict[str, int] = {}
        """The settings that were set last, by name."""
        self._segments: dict[tuple[int, int, int], int] = {}
        """(steps, batch, memory) -> the segment that was chosen for them."""
        self.activity = UNOBSERVED
        """The activity in the sequences so far, from which the memory is predicted."""
        self._gradient_sum: Array | None = None
        """Sum of the gradients of earlier parts of an update: one vector with the gradients of all parameters."""
        self._training = False
        """Whether the current sequence will run backward."""

    def forward(self, inputs: Mapping[str, Array], initial: Initial) -> dict[str, Array]:
        self._setting("autograd", 0)
        self._set_inputs(inputs)
        self._set_initial(initial)
        self.session.run()
        return self._records()

    def reset(self, batch: int, initial: Initial) -> None:
        self._setting("steps", 1)
        self._setting("batch", batch)
        self._setting("resume", 0)
        self._set_initial(initial)

    def step(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        self._set_arrays({id_: array[None] for id_, array in inputs.items()})
        self.session.run()
        self._setting("resume", 1)
        return {id_: record[0] for id_, record in self._records().items()}

    def counters(self) -> dict[str, int]:
        """Return the number of dropped spikes (one with several readers counts once) and, with loss scaling, of skipped updates."""
        return {"dropped_spikes": 0} | {
            name: int(self.session.get(name)[0]) for name in ("dropped_spikes", SKIPPED) if name in self.session.tensors
        }

    def run_forward(self, inputs: Mapping[str, InputValues], update: int | None = None) -> None:
        """Run a sequence and keep the values that :meth:`run_backward` reads. The loss of the project must be an ``ExternalLoss``.

        If `update` is given, dropout layers use the masks of the update with that number.
        """
        self._begin_training(inputs)
        batch = next(iter(inputs.values())).shape[1]
        self._set_initial({} if update is None or self.draw_masks is None else self.draw_masks(update, 0, batch))
        self._setting("autograd", 1)
        self.session.run()

    def run_backward(self) -> None:
        """Run backward from the last :meth:`run_forward`, after the adjoint of its output was set."""
        self.session.train_step()

    def adjoint_of(self, tensor: str) -> Array:
        return self.session.get(tensor)

    # ---- sequences ----------------------------------------------------------------------------------------------------

    def _setting(self, name: str, value: int) -> None:
        """Change a setting; tensors whose size depends on it are reset to the project's initial values."""
        if self._sizes.get(name) == value:
            return
        self.session.set(name, np.array([value], dtype=np.int32))
        self._sizes[name] = value
        if name not in self._shapeless:
            self.session.refresh()
            self._defaults = {}

    def _set_inputs(self, inputs: Mapping[str, Any]) -> None:
        steps, batch = next(iter(inputs.values())).shape[:2]
        self._check_memory(steps, batch)
        segment = self._segment(steps, batch)
        for name, value in (("steps", steps), ("batch", batch), ("segment", segment), ("resume", 0)):
            self._setting(name, value)
        self._set_arrays(inputs)

    def _set_arrays(self, inputs: Mapping[str, Any]) -> None:
        for info in self.description["inputs"]:
            name = info["tensor"]
            values = inputs[name]
            if isinstance(values, Events):
                self.session.set_events(name, values.begin, values.ids)
            else:
                self._set_array(name, values, info["shape"])

    def _set_array(self, name: str, values: Any, shape: Sequence[int]) -> None:
        """Set an input to an array [steps, batch, *shape]."""
        self.session.set(name, values)

    def _records(self) -> dict[str, Array]:
        records = {}
        for o in self.description["outputs"]:
            record = self.session.get(o["tensor"])
            records[o["id"]] = record.reshape(*record.shape[:2], *o["shape"])
        return records

    def _set_batch(self, inputs: Mapping[str, Array], target: Array) -> None:
        self._begin_training(inputs)
        self.session.set("labels", target)

    def _begin_training(self, inputs: Mapping[str, InputValues]) -> None:
        """Set the inputs of a training step. A forward run first observes the activity if the memory bound needs it."""
        steps, batch = next(iter(inputs.values())).shape[:2]
        self._training = True
        try:
            if self._depends_on_activity(steps, batch):
                self._observe_sequence(inputs, steps, batch)
            self._set_inputs(inputs)
        finally:
            self._training = False

    def _observe_sequence(self, inputs: Mapping[str, InputValues], steps: int, batch: int) -> None:
        """Run forward, at the segment length that needs the least memory, to observe how long the lists of nonzero values become."""
        self._check_memory(steps, batch)
        self._segments = {(steps, batch, self.memory or 0): least_segment(self.description, steps, batch, self._threads())}
        self._set_inputs(inputs)
        self._setting("autograd", 1)
        self.session.run()
        self._setting("autograd", 0)
        self._observe_activity()
        self._segments = {}

    def _depends_on_activity(self, steps: int, batch: int) -> bool:
        """Return whether a training step could exceed the memory bound at maximum activity, and no activity has been observed yet."""
        if self.memory is None or not self.description["training"] or self._segments or self.activity.fractions:
            return False
        maximum = ObservedActivity({one.name: 1.0 for one in Needs.of(self.description).lists})
        return least_bytes(self.description, steps, batch, self._threads(), maximum) > self.memory

    def max_samples(self, steps: int, batch: int) -> int:
        available = self._available_memory()[0] // max(1, steps * int(self.description["bytes_per_step"]))
        size = max(1, min(batch, available))
        if self.memory is None:
            return size
        self._observe_activity()
        threads, activity = self._threads(), self.activity
        fitting = bisect_right(range(1, size + 1), self.memory, key=lambda n: run_bytes(self.description, steps, n, threads, activity))
        return max(1, fitting)

    def train_parts(self, parts: Iterable[tuple[Mapping[str, Array], Array]], samples: int, learning_rate: float) -> float:
        loss = self.gather_parts(parts, samples)
        self.change_parameters(learning_rate)
        return loss

    def gather_parts(self, parts: Iterable[tuple[Mapping[str, Array], Array]], samples: int, first: int = 0) -> float:
        self._first_sample, loss = first, 0.0
        with self._gathering(Gather.BEGINS, samples):
            for inputs, target in parts:
                loss += self.train_batch(inputs, target, 0.0)
                self._first_sample += len(target)
                self._setting("gather", Gather.GOES_ON)
        return loss

    def gather_again(self, samples: int) -> float:
        with self._gathering(Gather.AGAIN, samples):
            return self.session.train_step()

    def keep_gradients(self, share: float, *, last: bool) -> None:
        """See :class:`~snnc.backends.runtime.engine.SplitEngine`; the sum is in the host's memory."""
        gradients = np.empty(self.gradient_elements, np.float32)
        self.gradients_to(gradients.ctypes.data)
        gradients *= np.float32(share)
        self._gradient_sum = gradients if self._gradient_sum is None else self._gradient_sum + gradients
        if last:
            self.gradients_from(self._gradient_sum.ctypes.data)
            self._gradient_sum = None

    def forget_gradients(self) -> None:
        self._gradient_sum = None

    def change_parameters(self, learning_rate: float) -> None:
        self.session.set("lr", np.array([learning_rate], dtype=np.float32))
        with self._gathering(Gather.CHANGES, 0):
            self.session.train_step()

    @contextmanager
    def _gathering(self, step: Gather, samples: int) -> Iterator[None]:
        """Set the part of an update that training steps perform, and the number of samples of the update (0: those of the step)."""
        self._setting("whole", samples)
        self._setting("gather", step)
        try:
            yield
        finally:
            self._first_sample = 0
            self._setting("gather", Gather.ALONE)
            self._setting("whole", 0)

    @property
    def fingerprint(self) -> str:
        return json.dumps({name: digest for name, digest in self.description["files"].items() if name != WEIGHTS})

    @property
    def gradient_elements(self) -> int:
        return sum(math.prod(info.shape) for info in self.session.with_role(Role.GRADIENT).values())

    def gradients_to(self, address: int) -> None:
        self._move_gradients(self.session.get_into, address)

    def gradients_from(self, address: int) -> None:
        self._move_gradients(self.session.set_from, address)

    def _move_gradients(self, move: Callable[[str, int, int], None], address: int) -> None:
        """Call `move` for each gradient with its address in memory that contains all gradients consecutively."""
        for name, info in self.session.with_role(Role.GRADIENT).items():
            elements = math.prod(info.shape)
            move(name, address, elements)
            address += elements * info.dtype.itemsize

    def _segment(self, steps: int, batch: int) -> int:
        """Return the number of steps between two checkpoints; 0: no checkpoints.

        It is chosen once for each number of steps and samples, and reduced if the bound would be exceeded at the activity observed later.
        """
        if self.segment is not None:
            return self.segment
        if self.memory is None or not self.description["training"]:
            return 0
        key, threads = (steps, batch, self.memory), self._threads()
        chosen = self._segments.get(key)
        if not self._training:
            # A forward run stores no histories; it uses the segment of a training step of the same size, so that nothing is reallocated.
            return 0 if chosen in (None, steps) else chosen
        self._observe_activity()
        sizes = (self.description, steps, batch)
        if chosen is None or predicted_bytes(*sizes, chosen, threads, self.activity) > self.memory:
            chosen = self._segments[key] = self._fitting(steps, batch, self.memory)
        return 0 if chosen == steps else chosen

    def _fitting(self, steps: int, batch: int, memory: int) -> int:
        """Return the longest segment that meets the bound.

        If none does, but one did for an earlier sequence of at least this size, warn and return the segment that needs the least memory.
        Otherwise raise a MemoryNeededError.
        """
        sizes = (self.description, steps, batch)
        try:
            return segment_for(*sizes, memory, self._threads(), self.activity)
        except MemoryNeededError:
            if not any(s >= steps and b >= batch and m == memory for s, b, m in self._segments):
                raise
        best = least_segment(*sizes, self._threads(), self.activity)
        needed = predicted_bytes(*sizes, best, self._threads(), self.activity)
        warnings.warn(
            f"{self.description['name']!r} fires more than at the start of training: with checkpoints every {best} steps it needs "
            f"{needed:,} bytes, but {memory:,} are allowed. Training continues above the bound; a smaller batch or accumulate= needs less.",
            UserWarning,
            stacklevel=2,
        )
        return best

    def least_memory(self, steps: int, batch: int) -> int:
        """Return the bytes of a training step at the segment length that needs the least memory, for the activity observed so far."""
        self._observe_activity()
        return least_bytes(self.description, steps, batch, self._threads(), self.activity)

    def _observe_activity(self) -> None:
        self.activity = self.activity.with_sequence(Needs.of(self.description), self._listed())

    def _threads(self) -> int:
        """Return the number of threads that have their own gradients."""
        return 1

    def _listed(self) -> Mapping[str, float]:
        """Return, by name of :class:`~snnc.backends.native.memory.ListNeeds`, the fraction of values that the last sequence listed."""
        return {}

    @abstractmethod
    def _available_memory(self) -> tuple[int, str]:
        """Return the bytes of memory that are available for a sequence, and the name of their owner for messages."""

    def _check_memory(self, steps: int, batch: int) -> None:
        """Raise an error, before allocating, for a sequence without checkpoints that does not fit in memory."""
        if self._segment(steps, batch):
            return
        needed = steps * batch * int(self.description["bytes_per_step"])
        available, owner = self._available_memory()
        if needed > available:
            raise MemoryNeededError(
                f"{self.description['name']!r} with {steps} steps and a batch of {batch} needs {needed / 2**30:.1f} GiB; {owner} has "
                f"{available / 2**30:.1f} GiB. Use a smaller batch or fewer steps."
            )
