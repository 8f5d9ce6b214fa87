"""Predicts the memory of a training step, and chooses the number of steps between checkpoints so that the memory stays within a bound."""

from __future__ import annotations

import json
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from math import isqrt
from pathlib import Path
from typing import Any, Final

from snnc.backends.native.library import NativeLibraryError
from snnc.backends.native.row_buffers import padded
from snnc.backends.runtime.errors import MemoryNeededError

ROOM_PART: Final = 8
"""Growing lists reserve 1 / ROOM_PART more memory than they need."""
ROOM: Final = 1 + 1 / ROOM_PART
"""Reserved size of a growing list relative to its contents."""
BUSY: Final = 2.0
"""Assumed activity of the busiest block of steps, relative to the activity in the whole sequence."""
BLOCK_ROWS: Final = 512
"""Intended number of rows of deltas (one per step and sample) in a block of steps (``CpuSession::block_length``): of all threads together
if they share gradients, else per thread. The deltas of one panel of neurons then fit in the L2 cache."""
FEW_STEPS: Final = 4
"""Minimum number of steps in a block if threads share gradients, unless a thread would have more than `BLOCK_ROWS` rows."""
SPARE_ENTRIES: Final = 16
"""Number of spare entries at the end of a thread's lists, because ``lists.cpp`` stores 16 entries at a time."""


@dataclass(frozen=True)
class ListNeeds:
    """Memory of the lists of nonzero values of a buffer, one list per step and sample."""

    name: str
    """Name of the listed buffer."""
    neurons: int
    """Number of values in a row."""
    past: int
    """Number of stored steps before the start of the sequence."""
    fraction: float
    """Assumed fraction of values that are listed, until a sequence has been observed."""
    width: int = 4
    """Bytes of an entry."""
    row: int = 0
    """Bytes of the dense row that replaces a list if too many values of an input are nonzero (``LISTED_PART`` of
    :mod:`snnc.backends.cpu.needs` is the limit); 0: always lists."""


@dataclass(frozen=True)
class OmittedCopies:
    """Copies of weights that a training step with checkpoints does not make, and the rows that each thread needs instead."""

    copies: int = 0
    """Bytes of all these copies, included in ``Needs.fixed``."""
    row_bytes: int = 0
    """Bytes of one of the rows that a thread needs instead. The number of rows is rounded up to a multiple of
    :data:`~snnc.backends.native.row_buffers.LINE`."""
    rows: str = "once"
    """How many rows a thread has: one for each sample (``once``), or one for each sample and step of a block (``block``)."""


@dataclass(frozen=True)
class Needs:
    """Memory needs of a program. Sizes are in bytes."""

    fixed: int
    """Parameters, moments, tables, copies of weights, initial values, and gradients that threads share."""
    rows: Mapping[str, int]
    """Bytes that a sample needs once (``once``), and for each step of the sequence (``steps``), of a segment (``segment``) and of a block
    (``block``)."""
    checkpoint: int = 0
    """Per sample and checkpoint."""
    thread: int = 0
    """Per thread: gradients that are not shared, sums and temporary values."""
    lists: Sequence[ListNeeds] = ()
    transposed: Sequence[tuple[str, int]] = ()
    """The lists that a thread transposes for a block of steps, to one list per source neuron: name, and bytes of a transposed entry."""
    blocks: bool = False
    """Whether several steps may form a block; otherwise a block is one step."""
    shared_gradients: bool = False
    """Whether threads share some gradients, which they compute together after each block."""
    omitted: OmittedCopies = field(default_factory=OmittedCopies)

    @classmethod
    def of(cls, description: Mapping[str, Any]) -> Needs:
        """Return the needs in ``project.json``.

        Raises a NativeLibraryError if the project was written by an incompatible version of snnc.
        """
        data = description["memory"]
        if data.keys() != {f.name for f in fields(cls)}:
            raise NativeLibraryError(
                f"the project of {description['name']!r} was written by a different version of snnc; emit the project again."
            )
        lists = [ListNeeds(**one) for one in data["lists"]]
        transposed = [(name, size) for name, size in data["transposed"]]
        return cls(**(dict(data) | {"lists": lists, "transposed": transposed, "omitted": OmittedCopies(**data["omitted"])}))


@dataclass(frozen=True)
class ObservedActivity:
    """Activity in the sequences so far."""

    fractions: Mapping[str, float] = field(default_factory=dict)
    """Name of a list -> maximum, over sequences, of the fraction of its values that were listed."""
    dense: Collection[str] = ()
    """Inputs that were stored as dense rows in some sequence."""

    def with_sequence(self, needs: Needs, fractions: Mapping[str, float]) -> ObservedActivity:
        """Return this activity merged with that of another sequence; its `fractions` lack the inputs that were stored as dense rows."""
        dense = {one.name for one in needs.lists if one.row and one.name not in fractions}
        largest = {name: max(fraction, self.fractions.get(name, 0.0)) for name, fraction in fractions.items()}
        return ObservedActivity({**self.fractions, **largest}, {*self.dense, *dense} if fractions else self.dense)


UNOBSERVED: Final = ObservedActivity()
"""The activity before any sequence: the assumed fractions of :class:`ListNeeds` apply."""


def predicted_bytes(
    description: Mapping[str, Any], steps: int, batch: int, segment: int, threads: int = 1, activity: ObservedActivity = UNOBSERVED
) -> int:
    """Return the predicted bytes of a training step, or of a run if the project does not train.

    `description` is ``project.json``. `segment` is the number of steps between two checkpoints; `steps` or more: no checkpoints.
    """
    return _predicted(Needs.of(description), steps, batch, segment, threads, activity)


def least_bytes(description: Mapping[str, Any], steps: int, batch: int, threads: int = 1, activity: ObservedActivity = UNOBSERVED) -> int:
    """Return the predicted bytes of a training step at the segment length that needs the least memory."""
    return _predicted(Needs.of(description), steps, batch, least_segment(description, steps, batch, threads, activity), threads, activity)


def least_segment(description: Mapping[str, Any], steps: int, batch: int, threads: int = 1, activity: ObservedActivity = UNOBSERVED) -> int:
    """Return the number of steps between two checkpoints with which a training step needs the least memory."""
    needs = Needs.of(description)
    # Among segments with the same number of checkpoints, the shortest needs the least memory.
    few = range(1, isqrt(steps) + 1)
    segments = {*few, *(-(-steps // number) for number in few)}
    best: int = min(sorted(segments), key=lambda segment: _predicted(needs, steps, batch, segment, threads, activity))
    return best


def run_bytes(description: Mapping[str, Any], steps: int, batch: int, threads: int = 1, activity: ObservedActivity = UNOBSERVED) -> int:
    """Return the predicted bytes of a run without a backward pass, including the gradients and moments that training allocates."""
    needs = Needs.of(description)
    if not description["training"]:
        return _predicted(needs, steps, batch, steps, threads, activity)
    # A run stores the rows of one step at a time, like a training step with segments of one step. It makes no checkpoints, and the copies
    # of weights stay allocated.
    return _predicted(replace(needs, checkpoint=0, omitted=OmittedCopies()), steps, batch, 1, threads, activity)


def check_bound(folder: Path, batch: int | None, allowed: int | None) -> None:
    """Warn if a training step of the whole batch does not fit in `allowed` bytes; None: no bound.

    `folder` contains the project; `batch` is None if it is unknown.

    Raises a MemoryNeededError if not even one sample fits (of one step if the number of steps is unknown).
    """
    if allowed is None:
        return
    description = json.loads((folder / "project.json").read_text(encoding="utf-8"))
    steps, trains = description["fixed_steps"], description["training"]
    length, what = steps or 1, "a training step" if trains else "a run"
    one = (least_bytes if trains else run_bytes)(description, length, 1)
    if one > allowed:
        raise MemoryNeededError(
            f"{description['name']!r} is allowed {allowed:,} bytes (memory=, --memory), but {what} of a single sample with {length} "
            f"step{'s' if length > 1 else ''} needs {one:,} (predicted). Allow this much, or use fewer steps."
        )
    if steps is None or batch is None or not trains or (needed := least_bytes(description, steps, batch)) <= allowed:
        return
    parts = next(n for n in range(2, batch + 1) if least_bytes(description, steps, -(-batch // n)) <= allowed)
    warnings.warn(
        f"{what} of {batch} samples needs {needed:,} bytes, but {allowed:,} are allowed (memory=, --memory); "
        f"train with accumulate={parts} (--accumulate {parts}), or a batch of {-(-batch // parts)}.",
        UserWarning,
        stacklevel=2,
    )


def _predicted(needs: Needs, steps: int, batch: int, segment: int, threads: int, activity: ObservedActivity) -> int:
    workers = min(threads, batch)
    samples = -(-batch // workers)
    block = _block(needs, batch, samples, segment)
    lengths = {"once": 1, "steps": steps, "segment": segment, "block": block}
    checkpoints = -(-steps // segment) if segment < steps else 0
    sample = sum(size * lengths[name] for name, size in needs.rows.items()) + checkpoints * needs.checkpoint
    sizes = [_list_bytes(one, steps, batch, workers, activity) for one in needs.lists]
    # A list that outgrows its memory is copied; meanwhile, its old memory stays allocated too.
    lists = sum(size for size, _ in sizes) + max((entries for _, entries in sizes), default=0)
    listed = {one.name: min(1.0, BUSY * activity.fractions.get(one.name, one.fraction)) * one.neurons for one in needs.lists}
    transposed = max((size * listed[name] for name, size in needs.transposed), default=0.0) * samples * block * workers
    omitted = needs.omitted
    replaced = workers * omitted.row_bytes * padded(samples * lengths[omitted.rows]) - omitted.copies if checkpoints else 0
    return int(replaced + needs.fixed + workers * needs.thread + batch * sample + lists + ROOM * transposed)


def _block(needs: Needs, batch: int, samples: int, segment: int) -> int:
    """Return the number of steps in a block, as ``CpuSession::block_length`` does; a thread has at most `samples` samples."""
    longest = max(1, BLOCK_ROWS // samples) if needs.blocks else 1
    return min(segment, max(BLOCK_ROWS // batch, min(FEW_STEPS, longest)) if needs.shared_gradients else longest)


def _list_bytes(needs: ListNeeds, steps: int, batch: int, workers: int, activity: ObservedActivity) -> tuple[int, int]:
    """Return the bytes of a buffer's rows and lists, and of the list entries alone."""
    rows = (steps + needs.past) * batch
    known = needs.name in activity.fractions
    size = needs.row * rows if needs.row and (not known or needs.name in activity.dense) else 0
    if needs.row and not known:
        return size, 0  # Until a sequence is observed, such an input counts as dense rows without list entries.
    entries = needs.width * int(activity.fractions.get(needs.name, needs.fraction) * needs.neurons * rows)
    return size + 8 * (rows + workers) + int(ROOM * entries) + workers * needs.width * (needs.neurons + SPARE_ENTRIES), entries


def segment_for(
    description: Mapping[str, Any], steps: int, batch: int, allowed: int, threads: int = 1, activity: ObservedActivity = UNOBSERVED
) -> int:
    """Return the longest segment with which a training step is predicted to stay within `allowed` bytes.

    Raises a MemoryNeededError, with the bytes of the best segment, if no segment fits.
    """
    needs = Needs.of(description)
    needed = {segment: _predicted(needs, steps, batch, segment, threads, activity) for segment in range(1, steps + 1)}
    fitting = [segment for segment, size in needed.items() if size <= allowed]
    if fitting:
        return max(fitting)
    best = min(needed, key=lambda segment: needed[segment])
    basis = "with the observed activity" if activity.fractions else "before any activity was observed"
    fewer = " fewer threads (each has its own gradients)," if min(threads, batch) > 1 else ""
    raise MemoryNeededError(
        f"{description['name']!r} with {steps} steps and a batch of {batch} is allowed {allowed / 2**20:.1f} MiB; with checkpoints every "
        f"{best} steps it needs {needed[best] / 2**20:.1f} MiB (predicted, {basis}). "
        f"Allow this much, use{fewer} a smaller batch or fewer steps, or divide the batch with accumulate=."
    )
