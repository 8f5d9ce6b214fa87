"""Distribution of neurons and samples to tiles and workers: arithmetic shared by placement, memory and cost.

The *cut* of a population divides it into replicas (copies on separate tiles, each for a share of the batch) and the neurons of a tile into
column groups. The n neurons of a tile are split into ``min(limit, n)`` column groups, and each of these into ``workers // column groups``
sample groups (at most one per sample). Every worker has a block if the number of column groups divides that of workers, and the samples
suffice. A low `limit` gives blocks with many neurons and few samples. Events are then cheap, but each sample group stores its own weight
gradient. Arguments with the type ``Any`` are numbers or NumPy arrays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Ints: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Bools: TypeAlias = npt.NDArray[np.bool_]


def column_groups(neurons: Any, limit: Any) -> Ints:
    """Return the number of column groups of a tile with `neurons`."""
    groups: Ints = np.minimum(np.asarray(neurons, dtype=np.int64), limit)
    return groups


def sample_groups(neurons: Any, limit: Any, workers: int, samples: Any, *, pairs: bool = False) -> Ints:
    """Return the number of sample groups per column group of a tile; with `pairs`, every sample group has at least two samples."""
    most = samples // 2 if pairs else samples
    groups: Ints = np.minimum(workers // np.maximum(column_groups(neurons, limit), 1), most)
    return groups


def column_limits(workers: int) -> tuple[int, ...]:
    """Return the limits on column groups that give every worker a block: the divisors of `workers`, in descending order."""
    return tuple(n for n in range(workers, 0, -1) if workers % n == 0)


def even_neurons(neurons: Any, limit: Any) -> Ints:
    """Return the number of neurons of a tile if each column group is padded to an even number, so that 16-bit values fill whole words."""
    n = np.asarray(neurons, dtype=np.int64)
    groups = np.maximum(column_groups(n, limit), 1)
    size, larger = n // groups, n % groups
    padded: Ints = n + larger * ((size + 1) % 2) + (groups - larger) * (size % 2)
    return padded


def ceil_div(a: Any, b: Any) -> Any:
    """Round ``a / b`` up."""
    return -(-a // b)


def mask_units(neurons: Any, limit: Any) -> Ints:
    """Return the number of mask units (each for 32 neurons) per sample on a tile; every column group has as many as the largest one."""
    n = np.asarray(neurons, dtype=np.int64)
    groups = np.maximum(column_groups(n, limit), 1)
    units: Ints = groups * ceil_div(ceil_div(n, groups), 32)
    return units


def mask_unit(count: Any, *, support: bool) -> Any:
    """Return the number of 32-bit words of a mask unit if the largest column group has `count` neurons.

    A neuron has one bit for its spike and, with `support`, another bit for the support of its surrogate. If the group has at most 16
    neurons, one word contains both bits.
    """
    return 1 + (np.asarray(count) > 16) * support


def mask_words(neurons: Any, limit: Any, *, support: bool = False) -> Ints:
    """Return the number of 32-bit words of masks per sample; `neurons` is the maximum number of neurons on a tile of the population."""
    n = np.asarray(neurons, dtype=np.int64)
    words: Ints = mask_units(n, limit) * mask_unit(ceil_div(n, np.maximum(column_groups(n, limit), 1)), support=support)
    return words


def places_within(counts: Ints) -> Ints:
    """Return 0, 1, …, count - 1 for each count in `counts`, in one array."""
    places: Ints = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    return places


def split(total: int, parts: int) -> Iterator[tuple[int, int]]:
    """Cut ``[0, total)`` into `parts` contiguous parts, the larger ones first; yield the start and the length of each."""
    size, larger = divmod(total, parts)
    first = 0
    for part in range(parts):
        count = size + (part < larger)
        yield first, count
        first += count


def split_samples(total: int, parts: int, *, paired: bool = True) -> Iterator[tuple[int, int]]:
    """Cut the samples of a tile into `parts`, and keep pairs of samples together, because one aligned load reads a pair.

    Pairs are split if the number of samples is odd, or if a part would otherwise be empty. Without `paired`, pairs are also split if
    that makes the largest part smaller.
    """
    step = int(sample_step(total, parts, paired=paired))
    for first, count in split(total // step, parts):
        yield step * first, step * count


def sample_step(samples: Any, parts: Any, *, paired: Any) -> Ints:
    """Return 2 if :func:`split_samples` keeps pairs of samples together, else 1."""
    n = np.asarray(samples)
    step: Ints = 1 + ((n % 2 == 0) & (n >= 2 * parts) & (paired | (ceil_div(n, parts) % 2 == 0)))
    return step


def largest_share(samples: Any, parts: Any, *, paired: Any) -> Any:
    """Return the number of samples in the largest part of :func:`split_samples`."""
    step = sample_step(samples, parts, paired=paired)
    return step * ceil_div(samples // step, parts)


def neurons_per_tile(neurons: int, tiles: int) -> Ints:
    """Spread `neurons` evenly over `tiles` tiles; return the number on each tile, the larger numbers first."""
    size, larger = divmod(neurons, tiles)
    return size + (np.arange(tiles) < larger).astype(np.int64)


@dataclass(frozen=True)
class Cut:
    """Replicas that share the batch, and the maximum number of column groups of a tile's neurons."""

    replicas: int
    """Number of groups of tiles that each process all neurons, for a share of the samples."""
    columns: int
    paired: bool = True
    """Whether workers share samples in pairs; see :func:`split_samples`."""

    def samples(self, batch: int) -> int:
        """Return the maximum number of samples on a tile."""
        return int(ceil_div(batch, self.replicas))


@dataclass(frozen=True, eq=False)
class Cuts:
    """Several cuts as arrays [cuts, 1]; with an array of numbers of neurons, results have the shape [cuts, numbers of neurons]."""

    replicas: Ints
    columns: Ints
    paired: Any

    @classmethod
    def of(cls, cuts: Sequence[Cut]) -> Cuts:
        """Stack cuts, one per row."""
        replicas, columns = (np.array([[getattr(cut, name)] for cut in cuts], dtype=np.int64) for name in ("replicas", "columns"))
        return cls(replicas, columns, np.array([[cut.paired] for cut in cuts]))

    def samples(self, batch: int) -> Ints:
        """Return the maximum number of samples on a tile, for each cut."""
        most: Ints = ceil_div(batch, self.replicas)
        return most


AnyCut: TypeAlias = Cut | Cuts
