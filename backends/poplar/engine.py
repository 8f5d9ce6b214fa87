"""The engine that runs emitted Poplar projects."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np

from snnc.backends.native.engine import Gather, NativeEngine
from snnc.backends.native.library import Role
from snnc.backends.poplar.build import build_poplar
from snnc.backends.runtime.engine import Array, Initial, Moments
from snnc.backends.runtime.errors import SpikeLimitError
from snnc.compiler.lowering.spike_limits import LOWEST, is_limit_value, sent

_Result = TypeVar("_Result")
_BATCHES: Final = "batches"
"""Setting of the program: the number of earlier batches whose stored gradients the next update includes."""
_GATHER: Final = "gather"
"""Setting of the program, if gradients and update are separate programs: the part of an update that the next call runs."""
_KEEP: Final = -1
"""Value of :data:`_BATCHES` for a batch that stores its gradients without an update."""
_KEPT: Final = "_kept"
"""Suffix of the names of stored gradients."""


class PoplarEngine(NativeEngine):
    """Runs the shared library of a project; see :class:`snnc.backends.runtime.engine.Engine`.

    `limits` contains the compiled capacity and random key of each source with a spike limit, by buffer. If the program cannot apply the
    limit of an input, the engine drops the spikes beyond it before it sends them (:meth:`_sent`).
    """

    def __init__(self, library: Path, folder: Path, limits: Mapping[str, tuple[float, float]] | None = None) -> None:
        super().__init__(library, folder)
        self._compiled = dict(limits or {})
        self._limits = dict(self._compiled)
        self._stored = 0
        """Number of batches whose gradients are stored for the next update."""
        self._dropped = 0
        """Number of input spikes that were dropped before sending."""

    def set_parameters(self, values: Mapping[str, Array]) -> None:
        for buffer, (capacity, key) in self._limits.items():
            limit = float(values.get(f"{buffer}_capacity", capacity)), float(values.get(f"{buffer}_choice", key))
            if limit != (capacity, key) and f"{buffer}_limit" in self.session.tensors:
                self.session.set(f"{buffer}_limit", np.array(limit, dtype=np.float32))
            self._limits[buffer] = limit
        super().set_parameters({name: value for name, value in values.items() if not is_limit_value(name)})

    @property
    def steps(self) -> int:
        return int(self.description["steps"])

    @property
    def batch(self) -> int:
        return int(self.description["batch"])

    def forward(self, inputs: Mapping[str, Array], initial: Initial) -> dict[str, Array]:
        self._set_inputs(inputs)
        self._set_initial(initial)
        self.session.run()
        return {o["id"]: self._record(o, inputs, initial) for o in self.description["outputs"]}

    def measure(self, inputs: Mapping[str, Array], initial: Initial) -> tuple[dict[str, Array], dict[str, Moments]]:
        outputs_with_moments = self.description.get("moments", ())
        if not outputs_with_moments:
            return self.forward(inputs, initial), {}
        outputs = self._gathered(Gather.MEASURES, lambda: self.forward(inputs, initial))
        return outputs, {about["id"]: self._moments(about) for about in outputs_with_moments}

    def _moments(self, about: Mapping[str, Any]) -> Moments:
        """Merge the moments that blocks computed from different samples (Chan et al. 1983, DOI 10.2307/2683386)."""
        neurons, begin, parts = math.prod(about["shape"]), 0, self.session.get(about["tensor"]).astype(np.float64)
        mean, squares, count = (np.zeros(neurons) for _ in range(3))
        for first, width, samples in about["blocks"]:
            (block_mean, block_squares), block_count = parts[begin : begin + 2 * width].reshape(2, width), self.steps * samples
            begin, block = begin + 2 * width, slice(first, first + width)
            total, distance = count[block] + block_count, block_mean - mean[block]
            squares[block] += block_squares + np.square(distance) * count[block] * block_count / total
            mean[block] += distance * block_count / total
            count[block] = total
        return Moments(mean.reshape(about["shape"]), squares.reshape(about["shape"]), self.steps * self.batch)

    def run_backward(self, adjoint: Array) -> None:
        self.session.set(self.description["adjoint"], adjoint)
        self.session.train_step()

    @property
    def accumulates(self) -> bool:
        return _BATCHES in self.session.tensors

    def train_parts(self, parts: Iterable[tuple[Mapping[str, Array], Array]], samples: int, learning_rate: float) -> float:
        """See :class:`~snnc.backends.runtime.engine.GatheringEngine`; each part is a batch of the compiled size."""
        loss, stored = 0.0, 0
        try:
            for inputs, target in parts:
                last = (stored + 1) * self.batch == samples
                self._set(_BATCHES, stored if last else _KEEP)
                loss += self.train_batch(inputs, target, learning_rate)
                self._first_sample += len(target)
                stored = 0 if last else stored + 1
        finally:
            self._first_sample = 0
            self._set(_BATCHES, 0)
            if stored:
                self._clear_stored_gradients()
        return loss * self.batch / samples

    def gather_parts(self, parts: Iterable[tuple[Mapping[str, Array], Array]], samples: int, first: int = 0) -> float:
        """See :class:`~snnc.backends.runtime.engine.SplitEngine`; there is one part, a batch of the compiled size."""
        ((inputs, target),) = parts
        assert len(target) == samples
        self._first_sample = first
        try:
            return self._gathered(Gather.BEGINS, lambda: self.train_batch(inputs, target, 0.0))
        finally:
            self._first_sample = 0

    def keep_gradients(self, share: float, *, last: bool) -> None:
        """See :class:`~snnc.backends.runtime.engine.SplitEngine`; the last gradients are added by the update itself."""
        if last:
            assert math.isclose(share * (self._stored + 1), 1), "all batches have the compiled size"
            return
        self._set(_BATCHES, _KEEP)
        self._gathered(Gather.CHANGES, self.session.train_step)
        self._stored += 1

    def forget_gradients(self) -> None:
        if self._stored:
            self._clear_stored_gradients()
            self._set_stored(0)

    def _set_stored(self, stored: int) -> None:
        self._stored = stored
        if self.accumulates:
            self._set(_BATCHES, stored)

    def _set(self, setting: str, number: int) -> None:
        self.session.set(setting, np.array([number], dtype=np.int32))

    def gather_again(self, samples: int) -> float:
        return self._gathered(Gather.AGAIN, self.session.train_step)

    def change_parameters(self, learning_rate: float) -> None:
        self.session.set("lr", np.array([learning_rate], dtype=np.float32))
        self._set_stored(self._stored)
        try:
            self._gathered(Gather.CHANGES, self.session.train_step)
        finally:
            self._set_stored(0)

    def _gathered(self, step: Gather, run: Callable[[], _Result]) -> _Result:
        """Return the result of `run`, during which the program runs only the part `step` of an update."""
        self._set(_GATHER, step)
        try:
            return run()
        finally:
            self._set(_GATHER, Gather.ALONE)

    def _clear_stored_gradients(self) -> None:
        for name, info in self.session.tensors.items():
            if info.role == Role.SETTING and name.endswith(_KEPT):
                self.session.set(name, np.zeros(info.shape, dtype=np.float32))

    def adjoint_of(self, tensor: str) -> Array:
        return self.session.get(tensor)

    def counters(self) -> dict[str, int]:
        """Return the total number of dropped spikes, and all counters of the program.

        ``b0_dropped`` counts the spikes that bus b0 dropped, ``b0_further`` those that it sent in further windows.
        """
        counts = {name: int(self.session.get(name)[0]) for name in self.session.with_role(Role.COUNTER)}
        sources = {about["tensor"]: about["source"] for about in self.description["counters"].values()}
        dropped: dict[str, int] = {}
        for name, number in counts.items():
            if name.endswith("_dropped"):
                source = sources.get(name, name)
                # Several buses may drop the same spike of a source.
                dropped[source] = max(dropped.get(source, 0), number)
        return {"dropped_spikes": sum(dropped.values()) + self._dropped, **counts}

    def _set_inputs(self, inputs: Mapping[str, Array]) -> None:
        for info in self.description["inputs"]:
            if info["used"]:
                array = self._sent(info, inputs[info["tensor"]])
                self.session.set(info["tensor"], array[0] if info["static"] else array)

    def _sent(self, info: Mapping[str, Any], array: Array) -> Array:
        """Return an input without the spikes beyond its limit, unless the program itself drops them.

        The program drops them if the limit is the compiled capacity and the lowest ids are kept.
        """
        buffer = f"{info['tensor']}_in"
        if buffer not in self._limits:
            return array
        capacity, key = self._limits[buffer]
        if (capacity, key) == (self._compiled[buffer][0], LOWEST):
            return array
        rows = np.asarray(array).reshape(self.steps, self.batch, -1)
        if info["static"] and key != LOWEST:
            raise SpikeLimitError(
                f"the input {info['label']!r} is the same at all steps, so it is sent only once, but a random choice of spikes "
                "differs from step to step. Use drop='lowest', or compile with drop='random' (--drop random)."
            )
        sent_rows = np.stack([sent(row, int(capacity), key, t) for t, row in enumerate(rows)])
        self._dropped += int(np.count_nonzero(rows) - np.count_nonzero(sent_rows))
        return sent_rows.reshape(np.shape(array))

    def _record(self, output: Mapping[str, Any], inputs: Mapping[str, Array], initial: Initial) -> Array:
        """Return an output at all steps, with initial values for the steps before its delay has passed."""
        delay: int = output["delay"]
        if output["input"] is None:
            record = self.session.get(output["tensor"])
        else:
            record = np.zeros((self.steps, self.batch, int(np.prod(output["shape"]))), dtype=np.float32)
            record[delay:] = inputs[output["input"]].reshape(self.steps, self.batch, -1)[: self.steps - delay]
        before = initial.get((output["source"].rpartition("_")[0], output["source"]))
        if before is not None:
            record[:delay] = before.reshape(self.batch, -1)
        return record.reshape(self.steps, self.batch, *output["shape"])


def open_engine(folder: Path) -> PoplarEngine:
    """Load the project in `folder`; build it first if needed."""
    return PoplarEngine(build_poplar(folder), Path(folder))
