"""Check a caller's arrays and convert them to the inputs of an engine: [T, B, *shape] (steps, samples, shape of an input), one dtype."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, cast, runtime_checkable

import numpy as np
import numpy.typing as npt

from snnc.backends.runtime.arrays import array_of, checked, describe, padded, to_sequence
from snnc.backends.runtime.engine import Array, Engine, Initial
from snnc.backends.runtime.errors import BatchSizeError, DataShapeError, StepsError, UnknownNameError
from snnc.backends.runtime.events import Events, InputValues, densely
from snnc.backends.runtime.prediction import check_training_targets
from snnc.compiler.ir.graph import FileLayout
from snnc.compiler.ir.step_program import InputInfo, StepProgram

Input: TypeAlias = npt.ArrayLike | Events
"""Values of one input."""
Inputs: TypeAlias = Mapping[str, Input] | Input
"""Inputs by name, or the values alone if the program has one input."""


@runtime_checkable
class BatchedData(Protocol):
    """Samples that are read batch by batch; for example, a :class:`snnc.data.DataSet`."""

    def __len__(self) -> int:
        """Number of samples."""

    def batches(self, size: int, *, order: Any = None, epoch: int = 0) -> Iterator[tuple[Any, Any]]:
        """Yield inputs, [T, B, *shape] or a mapping of such arrays by name, and targets, of `size` samples each.

        `order` contains the positions of the samples; None: all, in the order of the data set. Random changes of a sample (augmentation)
        depend on the number of the `epoch`.
        """


@dataclass(frozen=True, eq=False)
class Filled:
    """Inputs of a forward run, padded to the engine's batch size; `count` is the number of samples without padding."""

    inputs: Mapping[str, Array]
    initial: Initial
    count: int


@dataclass(frozen=True, eq=False)
class ProgramInputs:
    """The inputs of a program, in the form that an engine needs."""

    program: StepProgram
    engine: Engine

    def paired(self, inputs: Inputs, events: bool = True) -> Iterator[tuple[InputInfo, InputValues]]:
        """Yield the program's inputs with checked values; unless `events`, convert :class:`Events` to dense arrays."""
        infos = self.program.inputs
        names = [info.label for info in infos]
        if not isinstance(inputs, Mapping):
            if len(infos) != 1:
                raise UnknownNameError(
                    f"{self.program.name!r} has {len(infos)} inputs, {', '.join(names)}; give a mapping of names to arrays."
                )
            inputs = {names[0]: inputs}
        missing, unknown = [n for n in names if n not in inputs], [n for n in inputs if n not in names]
        if missing or unknown:
            parts = [f"{', '.join(map(repr, n))} {what}" for n, what in ((missing, "missing"), (unknown, "unknown")) if n]
            raise UnknownNameError(f"inputs: {'; '.join(parts)}. The inputs of {self.program.name!r} are {', '.join(names)}.")
        for info in infos:
            values = inputs[info.label]
            if isinstance(values, Events) and events:
                yield info, values
            else:
                array = values.dense() if isinstance(values, Events) else values
                yield info, checked(array, info.kind, f"the input {info.label!r}")

    def sequences(self, inputs: Inputs, steps: int | None = None) -> dict[str, InputValues]:
        """Convert inputs in the layout of the model's file: id -> [T, B, *shape]."""
        return self._aligned({i.id: _sequence(a, i) for i, a in self.paired(inputs)}, steps)

    def of_step(self, inputs: Inputs) -> dict[str, Array]:
        """Convert the inputs of one step, without a time axis, for the engine: id -> [B, *shape]."""
        arrays = {}
        for info, array in self.paired(inputs, events=False):
            assert not isinstance(array, Events)
            layout = FileLayout(None, None if info.layout.batch_axis is None else 0)
            single = to_sequence(array, InputInfo(info.id, info.label, info.shape, info.kind, layout))
            if len(single) != 1:
                raise DataShapeError(
                    f"the input {info.label!r} has shape {list(array.shape)}; a step takes {describe(info.shape, layout)}."
                )
            arrays[info.id] = single[0]
        batch = max(len(array) for array in arrays.values()) if arrays else 1
        self._check_batch({id_: array[None] for id_, array in arrays.items()}, batch)
        return {id_: self.cast(np.broadcast_to(a, (batch, *a.shape[1:]))) for id_, a in arrays.items()}

    def samples(self, x: Inputs) -> dict[str, InputValues]:
        """Check arrays of samples against the inputs: id -> [samples, T, *shape]; static inputs may have no T."""
        samples = {}
        for info, array in self.paired(x):
            layout = FileLayout(None if info.static else 1, 0)
            leading = 1 if info.static and array.ndim == len(info.shape) + 1 else 2
            if array.ndim != len(info.shape) + leading or array.shape[leading:] != info.shape or 0 in array.shape:
                wanted = describe(info.shape, layout).replace("B", "samples", 1)
                empty = "" if 0 not in array.shape else " (no samples)" if array.shape[0] == 0 else " (they are empty)"
                raise DataShapeError(f"the samples for {info.label!r} have shape {list(array.shape)}{empty}; they must be {wanted}.")
            if array.ndim == len(info.shape) + 2:
                self._check_steps(info, array, layout)
            samples[info.id] = array
        if len({len(a) for a in samples.values()}) != 1:
            raise BatchSizeError(f"the inputs have {', '.join(str(len(a)) for a in samples.values())} samples; they must be equal.")
        return samples

    def labelled(self, x: Inputs, y: npt.ArrayLike) -> tuple[dict[str, InputValues], Array]:
        """Check samples and their labels; return both, the samples in the form that :meth:`batch_of` takes."""
        data, labels = self.samples(x), array_of(y, "y")
        steps = next(iter(self.batch_of(data, np.arange(1)).values())).shape[0]
        check_training_targets(self.program, labels, len(next(iter(data.values()))), steps)
        return data, labels

    def batch_of(self, data: Mapping[str, InputValues], chosen: Array) -> dict[str, Array]:
        """Return the batch of the samples `chosen`, for the engine: id -> [T, B, *shape]."""
        axes = {info.id: len(info.shape) for info in self.program.inputs}
        batches: dict[str, InputValues] = {}
        for id_, a in data.items():
            if isinstance(a, Events):
                batches[id_] = a.of_samples(chosen)
            else:
                batches[id_] = a[chosen][None] if a.ndim == axes[id_] + 1 else a[chosen].swapaxes(0, 1)
        return {id_: self.cast(a) for id_, a in self._aligned(batches, None).items()}

    def batch(self, inputs: Inputs) -> dict[str, InputValues]:
        """Check a batch of a data set: id -> [T, B, *shape]."""
        sequences = {}
        for info, array in self.paired(inputs):
            if array.ndim != len(info.shape) + 2 or array.shape[2:] != info.shape or 0 in array.shape:
                wanted = describe(info.shape, FileLayout(0, 1))
                raise DataShapeError(f"a batch of the data set is {list(array.shape)} for the input {info.label!r}; it must be {wanted}.")
            sequences[info.id] = array
        return self._aligned(sequences, None)

    def labelled_batch(self, inputs: Inputs, targets: npt.ArrayLike) -> tuple[dict[str, InputValues], Array]:
        """Check a batch of a data set and its labels; return both, the inputs as :meth:`batch` does."""
        sequences, labels = self.batch(inputs), array_of(targets, "the targets")
        check_training_targets(self.program, labels, *reversed(next(iter(sequences.values())).shape[:2]))
        return sequences, labels

    def part_of(self, sequences: Mapping[str, InputValues], chosen: Array) -> dict[str, Array]:
        """Return the samples `chosen` of sequences [T, B, *shape], for the engine."""
        parts = {}
        for id_, a in sequences.items():
            everything = np.array_equal(chosen, np.arange(a.shape[1]))
            parts[id_] = self.cast(a if everything else a.part(chosen) if isinstance(a, Events) else a[:, chosen])
        return parts

    def filled(self, sequences: Mapping[str, InputValues], initial: Mapping[tuple[str, str], Array], part: slice) -> Filled:
        """Return the samples `part` of sequences [T, B, *shape], padded with zeros to the engine's batch size."""
        inputs = {id_: array.part(part) if isinstance(array, Events) else array[:, part] for id_, array in sequences.items()}
        count = next(iter(inputs.values())).shape[1]
        start = {key: array[part] for key, array in initial.items()}
        missing = (self.engine.batch or count) - count
        if missing > 0:
            inputs = {id_: padded(array, 1, missing) for id_, array in densely(inputs).items()}
            start = {key: padded(array, 0, missing) for key, array in start.items()}
        return Filled({id_: self.cast(a) for id_, a in inputs.items()}, {key: self.cast(a) for key, a in start.items()}, count)

    def cast(self, array: InputValues) -> Array:
        """Return `array` in the engine's dtype; events become a dense array unless the engine accepts them."""
        if isinstance(array, Events):
            if getattr(self.engine, "accepts_events", False):
                return cast(Array, array)
            array = array.dense()
        dtype: npt.DTypeLike = getattr(self.engine, "dtype", np.float32)
        result: npt.NDArray[Any] = np.ascontiguousarray(array, dtype=dtype)
        return result

    def _check_batch(self, sequences: Mapping[str, InputValues], batch: int) -> None:
        for info in self.program.inputs:
            size = sequences[info.id].shape[1]
            if size != batch and (info.layout.batch_axis is not None or isinstance(sequences[info.id], Events)):
                raise BatchSizeError(f"the input {info.label!r} has a batch size of {size}, another input {batch}; they must be equal.")

    def _check_steps(self, info: InputInfo, array: InputValues, layout: FileLayout) -> None:
        fixed = self.engine.steps or self.program.steps
        samples, steps = array.shape[:2]
        if fixed is None or steps == fixed:
            return
        wanted = describe(info.shape, layout).replace("B", "samples", 1)
        swapped = " Samples and steps look swapped: give x.swapaxes(0, 1)." if samples == fixed else ""
        raise StepsError(
            f"the samples for {info.label!r} have shape {list(array.shape)}, so {steps} steps of {samples} samples, but the network was "
            f"compiled for {fixed} steps; they must be {wanted}.{swapped}"
        )

    def _swapped(self, fixed: int | None, batch: int) -> str:
        """Return a hint if the batch has as many samples as the network has steps."""
        timed = [i for i in self.program.inputs if not i.static and i.layout.batch_axis is not None]
        if batch != fixed or not timed:
            return ""
        takes = describe(timed[0].shape, timed[0].layout)
        return f" They have {batch} samples, so steps and samples look swapped: {timed[0].label!r} takes {takes}."

    def _aligned(self, sequences: Mapping[str, InputValues], steps: int | None) -> dict[str, InputValues]:
        """Repeat values of static inputs and of inputs without a batch axis, so that all sequences have the same T and B."""
        lengths = {len(sequences[i.id]) for i in self.program.inputs if not i.static or len(sequences[i.id]) > 1}
        fixed = self.engine.steps or self.program.steps
        total = steps or (next(iter(lengths)) if lengths else fixed)
        if total is None:
            raise StepsError("no input has a time axis; give the number of steps with steps=….")
        batch = max(a.shape[1] for a in sequences.values())
        if len(lengths) > 1 or (lengths and total not in lengths) or (fixed is not None and total != fixed):
            compiled = "" if fixed is None else f"; the network was compiled for {fixed}"
            requested = f", but {steps} were requested" if steps else "; their numbers must be equal" if len(lengths) > 1 else ""
            swapped = self._swapped(fixed, batch) if len(lengths) == 1 and not steps else ""
            raise StepsError(f"the inputs have {', '.join(map(str, sorted(lengths))) or 'no'} steps{requested}{compiled}.{swapped}")
        self._check_batch(sequences, batch)
        return {id_: a if isinstance(a, Events) else np.broadcast_to(a, (total, batch, *a.shape[2:])) for id_, a in sequences.items()}


def _sequence(values: InputValues, info: InputInfo) -> InputValues:
    if not isinstance(values, Events):
        return to_sequence(values, info)
    if values.shape[2:] != info.shape or info.static:
        raise DataShapeError(
            f"the events of the input {info.label!r} represent {list(values.shape)}; it takes [T, B, {', '.join(map(str, info.shape))}]."
        )
    return values
