"""Data sets that are read batch by batch."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias, cast, runtime_checkable

import numpy as np
import numpy.typing as npt

from snnc.backends.runtime.events import InputValues
from snnc.compiler.ir.arrays.randomness import Stream
from snnc.data.background import read_ahead
from snnc.data.checks import check_number, check_whole
from snnc.data.collate import collate, targets_of
from snnc.data.sample import Array, Draw, Sample
from snnc.errors import DataOptionError

Reader: TypeAlias = Callable[[int], tuple[Sample, Any]]
"""Maps the index of a sample to the sample and its target."""


class SampleSource(Protocol):
    """Source of the samples of a data set.

    Attributes
    ----------
    classes
        Number of classes; None if unknown.
    timed
        Whether the first axis of array samples is time.
    """

    @property
    def classes(self) -> int | None: ...  # noqa: D102

    @property
    def timed(self) -> bool: ...  # noqa: D102

    def __len__(self) -> int: ...

    def opened(self) -> AbstractContextManager[Reader]:
        """Open the files for one pass over the data; only one thread calls the reader."""
        ...


@runtime_checkable
class Transform(Protocol):
    """A function from sample to sample that may draw random numbers: binning, an encoder, an augmentation.

    Attributes
    ----------
    gives_time
        Whether the transform adds the time axis: its results then always have one; otherwise only if the sample has one.
    """

    @property
    def gives_time(self) -> bool: ...  # noqa: D102

    def apply(self, sample: Sample, draw: Draw) -> Sample:
        """Return the changed sample; the argument is not modified."""
        ...


@dataclass(frozen=True, eq=False)
class DataSet:
    """Samples in files or in memory, read, transformed and collated batch by batch.

    Samples are read from files while :meth:`batches` is iterated, a few batches at a time; but npz archives and MNIST are read completely
    when the data set is made. Data sets are immutable: :meth:`take`, :meth:`split` and :meth:`map` return new ones.

    Parameters
    ----------
    source
        The samples.
    chosen
        Indices of its samples in the source, in order; None for all.
    transforms
        Transforms applied to each sample, in order.
    ahead
        Number of batches that the background thread prepares in advance.

    Examples
    --------
    >>> import numpy as np, snnc
    >>> images = np.linspace(0, 1, 60, dtype=np.float32).reshape(10, 6)
    >>> data = snnc.data.in_memory(images, np.arange(10) % 2, timed=False).map(snnc.data.Latency(steps=5))
    >>> train, test = data.split(0.8, seed=1)
    >>> [(x.shape, y.tolist()) for x, y in test.batches(2)]
    [((5, 2, 6), [1, 0])]
    """

    source: SampleSource
    chosen: Array | None = None
    transforms: tuple[Transform, ...] = ()
    ahead: int = 2

    def __post_init__(self) -> None:
        check_whole("ahead", self.ahead, 1)

    def __len__(self) -> int:
        return len(self.source) if self.chosen is None else len(self.chosen)

    @property
    def classes(self) -> int | None:
        """Number of classes; None if unknown."""
        return self.source.classes

    @property
    def fingerprint(self) -> str:
        """Text that identifies the data set by its kind, samples and transforms; a resumed run checks it.

        It contains no file names, because files may move, and does not depend on the contents of files and functions.
        """
        chosen = "all" if self.chosen is None else hashlib.sha256(self.chosen.astype(np.int64).tobytes()).hexdigest()
        steps = ", ".join(type(t).__name__ if isinstance(t, _Function) else repr(t) for t in self.transforms)
        return f"{type(self.source).__name__} of {len(self.source)}, {chosen}, {steps}"

    def batches(
        self, size: int, *, order: Sequence[int] | npt.NDArray[np.integer[Any]] | None = None, epoch: int = 0
    ) -> Iterator[tuple[InputValues, Array]]:
        """Yield the batches; a background thread reads and transforms them in advance.

        Parameters
        ----------
        size
            Number of samples per batch; the last batch may be smaller.
        order
            Positions of the samples in this data set, for example a permutation or a part of one; None for all, in order.
        epoch
            Number of the epoch. Random numbers depend on it, on the seed and position of the transform, and on the index of the sample.

        Yields
        ------
        tuple
            The inputs, :class:`snnc.Events` or an array [T, B, *shape], and the targets, [B] int64 for class indices.

        Raises
        ------
        DataOptionError
            An argument is out of range.
        DataFormatError
            A file is damaged.
        SampleError
            The samples cannot be combined into a batch.
        """
        check_whole("size", size, 1)
        check_whole("epoch", epoch, 0)
        places = np.arange(len(self)) if order is None else self._checked(order, "order")
        numbers = places if self.chosen is None else self.chosen[places]
        return read_ahead(lambda: self._read_batches(numbers, size, epoch), self.ahead)

    def take(self, indices: Sequence[int] | npt.NDArray[np.integer[Any]] | slice) -> DataSet:
        """Return the data set of the samples at these positions, in this order.

        Raises
        ------
        DataOptionError
            A position is not a whole number, or is out of range.
        """
        places = np.arange(len(self))[indices] if isinstance(indices, slice) else self._checked(indices, "indices")
        return replace(self, chosen=places if self.chosen is None else self.chosen[places])

    def split(self, fraction: float, seed: int = 0) -> tuple[DataSet, DataSet]:
        """Return two data sets without common samples: a random `fraction` of the samples, and the rest.

        Raises
        ------
        DataOptionError
            The fraction is not between 0 and 1, or leaves one of them empty.
        """
        check_whole("seed", seed, 0)
        check_number("fraction", fraction, 0, 1)
        first = round(fraction * len(self))
        if not 0 < first < len(self):
            raise DataOptionError(f"fraction is {fraction}, which divides {len(self)} samples into {first} and {len(self) - first}.")
        mixed = Stream(seed).permutation(len(self))
        return self.take(np.sort(mixed[:first])), self.take(np.sort(mixed[first:]))

    def map(self, change: Transform | Callable[[Any], Any]) -> DataSet:
        """Return the data set with transformed samples: by binning, an encoder, an augmentation, or a function.

        Parameters
        ----------
        change
            A :class:`Transform`, or a function from sample to sample; a sample is a :class:`snnc.data.Aer`, a
            :class:`snnc.data.Spikes` or an array. It runs in the background thread.
        """
        step = change if isinstance(change, Transform) else _Function(change)
        return replace(self, transforms=(*self.transforms, step))

    def _read_batches(self, numbers: Array, size: int, epoch: int) -> Iterator[tuple[InputValues, Array]]:
        with self.source.opened() as read:
            for at in range(0, len(numbers), size):
                samples, targets = [], []
                for number in numbers[at : at + size].tolist():
                    sample, target = read(number)
                    samples.append(self._transformed(sample, number, epoch))
                    targets.append(target)
                yield collate([s for s, _ in samples], samples[0][1]), targets_of(targets)

    def _transformed(self, sample: Sample, number: int, epoch: int) -> tuple[Sample, bool]:
        timed = self.source.timed
        for place, step in enumerate(self.transforms):
            sample = step.apply(sample, Draw(epoch, number, place, timed))
            timed = timed or step.gives_time
        return sample, timed

    def _checked(self, positions: Any, name: str) -> Array:
        """Return positions of samples as an array; raise DataOptionError, which calls them `name`, if one is invalid."""
        places = np.asarray(positions)
        if places.ndim != 1 or (places.dtype.kind not in "iu" and len(places)):
            raise DataOptionError(f"{name} is {places.dtype} {list(places.shape)}; give a list of sample positions (whole numbers).")
        wrong = (places < 0) | (places >= len(self)) if len(places) else np.zeros(0, bool)
        if wrong.any():
            raise DataOptionError(f"{name} contains {places[wrong][0]}; the data set has the samples 0 … {len(self) - 1}.")
        return places.astype(np.int64)

    def __repr__(self) -> str:
        steps = "".join(f", {step!r}" for step in self.transforms)
        return f"DataSet({len(self):,} samples of {self.source!r}{steps})"


@dataclass(frozen=True)
class _Function:
    function: Callable[[Any], Any]
    gives_time: bool = False

    def apply(self, sample: Sample, draw: Draw) -> Sample:
        return cast(Sample, self.function(sample))
