"""The tiles that run a population, with the neurons and samples on each.

A replica is a copy of the population on separate tiles, for a share of the batch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from snnc.compiler.tiles.blocks.grouping import Bools, Cut, Ints


@dataclass(frozen=True, eq=False)
class TileRange:
    """Tiles of all replicas of a population, with their neurons and samples.

    Replica r processes all neurons for the samples ``samples[r]``, on the contiguous tiles that start at ``starts[r]``. All replicas cut
    the neurons in the same way.
    """

    starts: tuple[int, ...]
    """First tile of each replica."""
    neurons: Ints
    """Number of neurons on each tile of one replica."""
    samples: tuple[tuple[int, int], ...]
    """First sample and number of samples of each replica."""
    columns: int
    """Maximum number of column groups of a tile's neurons; see :mod:`snnc.compiler.tiles.blocks.grouping`."""
    paired: bool = field(default=True, kw_only=True)
    """Whether workers share samples in pairs; see :func:`snnc.compiler.tiles.blocks.grouping.split_samples`."""

    @property
    def cut(self) -> Cut:
        """How the population is divided into replicas and column groups."""
        return Cut(self.replicas, self.columns, self.paired)

    @property
    def replicas(self) -> int:
        """Number of replicas."""
        return len(self.starts)

    @property
    def width(self) -> int:
        """Number of tiles of one replica."""
        return len(self.neurons)

    @cached_property
    def most_samples(self) -> int:
        """Number of samples of the largest replica."""
        return max(count for _, count in self.samples)

    @cached_property
    def tiles(self) -> Ints:
        """All tiles, replica after replica."""
        return (np.asarray(self.starts, dtype=np.int64)[:, None] + np.arange(self.width)).ravel()

    @cached_property
    def tile_neurons(self) -> Ints:
        """Number of neurons on each of `tiles`."""
        return np.tile(self.neurons, self.replicas)

    @cached_property
    def tile_samples(self) -> Ints:
        """Number of samples on each of `tiles`."""
        return np.repeat(np.array([count for _, count in self.samples], dtype=np.int64), self.width)

    def of(self, replica: int) -> Ints:
        """Return the tiles of one replica."""
        return self.tiles[replica * self.width : (replica + 1) * self.width]

    def contains(self, tiles: Ints) -> Bools:
        """Return [tiles, replicas]: whether each of `tiles` belongs to each replica."""
        starts = self._order[0]
        return (tiles[:, None] >= starts) & (tiles[:, None] < starts + self.width)

    @cached_property
    def _order(self) -> tuple[Ints, Ints, Ints]:
        """First tile, first sample and end of the samples of each replica."""
        first = np.array([first for first, _ in self.samples], dtype=np.int64)
        counts = np.array([count for _, count in self.samples], dtype=np.int64)
        return np.asarray(self.starts, dtype=np.int64), first, first + counts

    def samples_on(self, tiles: Ints, first: Ints, stop: Ints) -> Ints:
        """Return how many of the samples ``[first[i], stop[i])`` the tile ``tiles[i]`` processes, for each i."""
        starts, begin, end = self._order
        replica = np.maximum(np.searchsorted(starts, tiles, side="right") - 1, 0)
        there = (tiles >= starts[replica]) & (tiles < starts[replica] + self.width)
        return np.where(there, np.maximum(np.minimum(stop, end[replica]) - np.maximum(first, begin[replica]), 0), 0)

    def windows_read(self, first: Ints, stop: Ints) -> Ints:
        """Return how many windows each tile of the range reads.

        Window i contains the samples ``[first[i], stop[i])``; windows are in ascending order.
        """
        _, begin, end = self._order
        number: Ints = np.searchsorted(first, end, side="left") - np.searchsorted(stop, begin, side="right")
        return np.repeat(number, self.width)

    def replica_with(self, sample: int) -> int:
        """Return the replica that processes `sample`."""
        return int(np.searchsorted(self._order[2], sample, side="right"))

    def repeated(self, times: int, tiles: int, batch: int) -> TileRange:
        """Return `times` copies of all replicas; each copy is shifted by `tiles` and processes the next `batch` samples."""
        starts = tuple(s + k * tiles for k in range(times) for s in self.starts)
        samples = tuple((first + k * batch, count) for k in range(times) for first, count in self.samples)
        return TileRange(starts, self.neurons, samples, self.columns, paired=self.paired)


@dataclass(frozen=True, eq=False)
class ScatteredRange(TileRange):
    """One replica on arbitrary tiles, for the baselines of :mod:`snnc.compiler.tiles.baselines`."""

    places: Ints
    """The tiles, in ascending order; `starts` contains the first of them."""

    @cached_property
    def tiles(self) -> Ints:
        """All tiles."""
        return self.places

    def samples_on(self, tiles: Ints, first: Ints, stop: Ints) -> Ints:
        """See :class:`TileRange`: all samples on each of `places`."""
        return np.where(np.isin(tiles, self.places), stop - first, 0)

    def contains(self, tiles: Ints) -> Bools:
        """See :class:`TileRange`."""
        return np.isin(tiles, self.places)[:, None]
