"""Record the spikes of a few samples in every spiking layer and input, for reports."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from snnc.backends.reference.engine import ReferenceEngine
from snnc.backends.reference.memory import SequenceArrays
from snnc.backends.runtime.engine import Array, Initial
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.tiles.partition import Correspondence
from snnc.data.arrays import read_arrays, write_arrays
from snnc.errors import RecordingError

MAX_SPIKES: Final = 20_000_000
MAX_BYTES: Final = 1 << 30
"""Maximum size of a recording's arrays in bytes."""
SOURCE: Final = "computed by the NumPy reference"
_VERSION: Final = 1


@dataclass(frozen=True, eq=False)
class Train:
    """Spike train of one buffer: spike n is from neuron `ids[n]` in step `steps[n]` of sample `samples[n]`.

    `owner` is the id of its input or population, `label` the author's name for it, and `width` the number of neurons.
    """

    buffer: str
    owner: str
    label: str
    width: int
    steps: npt.NDArray[np.int64]
    samples: npt.NDArray[np.int64]
    ids: npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Recording:
    """Spikes of `samples` samples over `steps` steps; `source` is the program that computed them."""

    steps: int
    samples: int
    source: str
    trains: tuple[Train, ...]

    def counts(self, train: Train) -> npt.NDArray[np.int64]:
        """Return [steps, samples]: the number of spikes of a train in each step of each sample."""
        flat = np.bincount(train.steps * self.samples + train.samples, minlength=self.steps * self.samples)
        return flat.reshape(self.steps, self.samples)


def record(program: StepProgram, parameters: Mapping[str, Array], inputs: Mapping[str, Array], initial: Initial) -> Recording:
    """Run `inputs` (id -> [T, B, *shape]) on the NumPy reference and record the spikes; float32 targets agree up to rounding.

    Raise RecordingError if there are too many spikes, MemoryNeededError if the samples do not fit in this machine's memory.
    """
    engine = ReferenceEngine(program)
    engine.set_parameters({name: value for name, value in parameters.items() if name in program.parameters})
    memory = engine.run_sequence(inputs, initial)
    trains = tuple(_train(memory, *where) for where in _spiking(program))
    samples, total = memory.batch, sum(len(train.ids) for train in trains)
    if total > MAX_SPIKES:
        raise RecordingError(f"{samples} samples have {total:,} spikes, more than the maximum of {MAX_SPIKES:,}; record fewer samples.")
    return Recording(memory.steps, samples, SOURCE, trains)


def _spiking(program: StepProgram) -> list[tuple[str, str, str]]:
    buffers = [(f"{i.id}_in", i.id, i.label) for i in program.inputs if i.kind == "spikes"]
    for p in program.populations:
        spiking = [b for b in p.output_buffers.values() if b in program.buffers and program.buffers[b].kind == "spikes"]
        buffers += [(b, p.id, p.label if len(spiking) == 1 else f"{p.label}, {b}") for b in spiking]
    return buffers


def _train(memory: SequenceArrays, buffer: str, owner: str, label: str) -> Train:
    values = memory[buffer].reshape(memory.steps, memory.batch, -1)
    steps, samples, ids = np.nonzero(values)
    return Train(buffer, owner, label, values.shape[2], steps, samples, ids)


def in_parts(recording: Recording, correspondence: Correspondence) -> Recording:
    """Return the same spikes, assigned to the populations of a plan that splits populations or reorders their channels."""
    trains, owners = {t.buffer: t for t in recording.trains}, {p.id: p.label for p in correspondence.program_of_parts.populations}
    new_trains = []
    for buffer, place in correspondence.buffers.items():
        train = trains.get(place.whole)
        if train is None:
            continue
        owner = next((id_ for id_ in owners if buffer.startswith(f"{id_}_")), train.owner)
        if place.index is None:
            new_trains.append(replace(train, buffer=buffer, owner=owner))
            continue
        index_in_part = np.full(train.width, -1)
        index_in_part[place.index] = np.arange(len(place.index))
        in_part = index_in_part[train.ids] >= 0
        label, width = train.label.replace(_whole_label(correspondence, owner), owners[owner], 1), len(place.index)
        new_trains.append(
            Train(buffer, owner, label, width, train.steps[in_part], train.samples[in_part], index_in_part[train.ids[in_part]])
        )
    return replace(recording, trains=tuple(new_trains))


def _whole_label(correspondence: Correspondence, part: str) -> str:
    whole = correspondence.populations[part].whole
    return next(p.label for p in correspondence.whole.populations if p.id == whole)


def write_recording(path: Path, recording: Recording) -> None:
    """Write a recording as an npz archive; docs/reference/inspect.md describes its arrays."""
    about = {
        "version": _VERSION,
        **{name: getattr(recording, name) for name in ("steps", "samples", "source")},
        "trains": [{"buffer": t.buffer, "owner": t.owner, "label": t.label, "width": t.width} for t in recording.trains],
    }
    arrays: dict[str, npt.NDArray[Any]] = {"about": np.frombuffer(json.dumps(about).encode(), dtype=np.uint8)}
    for number, train in enumerate(recording.trains):
        columns = ("step", train.steps, recording.steps), ("sample", train.samples, recording.samples), ("id", train.ids, train.width)
        for name, values, bound in columns:
            arrays[f"{name}_{number}"] = values.astype(np.min_scalar_type(max(bound - 1, 0)))
    write_arrays(path, arrays)


def read_recording(path: Path) -> Recording:
    """Read a recording written by :func:`write_recording`; raise RecordingError if the file is damaged or too large."""
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(info.file_size for info in archive.infolist()) > MAX_BYTES:
                raise RecordingError(f"{str(path)!r} has more than {MAX_BYTES:,} bytes; record fewer samples.")
        arrays = read_arrays(path)
        about = json.loads(arrays["about"].tobytes())
        if about["version"] != _VERSION:
            raise ValueError(f"version {about['version']!r}")
        steps, samples = int(about["steps"]), int(about["samples"])
        if not (steps > 0 and samples > 0 and steps * samples <= MAX_BYTES):
            raise ValueError(f"{steps} steps of {samples} samples")
        trains = tuple(_read_train(arrays, number, info, steps, samples) for number, info in enumerate(about["trains"]))
        return Recording(steps, samples, str(about["source"]), trains)
    except RecordingError:
        raise
    except Exception as error:  # a damaged archive may raise any exception
        raise RecordingError(f"the recording {str(path)!r} is damaged ({error}); run the project again with --record.") from None


def _read_train(arrays: Mapping[str, npt.NDArray[Any]], number: int, info: Mapping[str, Any], steps: int, samples: int) -> Train:
    width = int(info["width"])
    columns = []
    for name, bound in (("step", steps), ("sample", samples), ("id", width)):
        values = arrays[f"{name}_{number}"]
        if values.ndim != 1 or values.dtype.kind != "u" or (values.size and int(values.max()) >= bound):
            raise ValueError(f"{name}_{number} is not a list of numbers below {bound}")
        columns.append(values.astype(np.int64))
    if len({len(values) for values in columns}) != 1:
        raise ValueError(f"the lists of train {number} differ in length")
    return Train(str(info["buffer"]), str(info["owner"]), str(info["label"]), width, *columns)
