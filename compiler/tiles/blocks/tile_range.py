"""Tiles of a population's replicas, with the neurons and samples on each."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from snnc.compiler.tiles.blocks.cut import Cut
from snnc.compiler.tiles.blocks.grouping import Bools, Ints


@dataclass(frozen=True, eq=False)
class TileRange:
    """Tiles of a population, with their neurons and samples.

    Replica r processes all neurons for the samples ``samples[r]``, on the contiguous tiles that start at ``starts[r]``. All replicas cut
    the neurons in the same way.

    Attributes
    ----------
    starts
        First tile of each replica.
    neurons
        Neurons on each tile of one replica.
    samples
        First sample and number of samples of each replica.
    columns
        Maximum number of column groups of a tile's neurons; see :mod:`snnc.compiler.tiles.blocks.grouping`.
    paired
        Whether workers share samples in pairs; see :func:`snnc.compiler.tiles.blocks.grouping.split_samples`.
    """

    starts: tuple[int, ...]
    neurons: Ints
    samples: tuple[tuple[int, int], ...]
    columns: int
    paired: bool = field(default=True, kw_only=True)

    @property
    def cut(self) -> Cut:
        """The cut of the population."""
        return Cut(self.replicas, self.columns, self.paired)

    @property
    def replicas(self) -> int:
        """Number of replicas."""
        return len(self.starts)

    @property
    def width(self) -> int:
        """Tiles of one replica."""
        return len(self.neurons)

    @cached_property
    def most_samples(self) -> int:
        """Samples of the largest replica."""
        return max(count for _, count in self.samples)

    @cached_property
    def tiles(self) -> Ints:
        """All tiles, replica after replica."""
        return (np.asarray(self.starts, dtype=np.int64)[:, None] + np.arange(self.width)).ravel()

    @cached_property
    def tile_neurons(self) -> Ints:
        """Neurons on each of `tiles`."""
        return np.tile(self.neurons, self.replicas)

    @cached_property
    def tile_samples(self) -> Ints:
        """Samples on each of `tiles`."""
        return np.repeat(np.array([count for _, count in self.samples], dtype=np.int64), self.width)

    def of(self, replica: int) -> Ints:
        """Return the tiles of one replica."""
        return self.tiles[replica * self.width : (replica + 1) * self.width]

    def index_of(self, replica: int, tile: int) -> int | None:
        """Return the index of `tile` among the tiles of a replica; None if it is not one of them."""
        index = tile - self.starts[replica]
        return index if 0 <= index < self.width else None

    def contains(self, tiles: Ints) -> Bools:
        """Return [tiles, replicas]: whether each tile belongs to each replica."""
        starts = self._order[0]
        return (tiles[:, None] >= starts) & (tiles[:, None] < starts + self.width)

    @cached_property
    def _order(self) -> tuple[Ints, Ints, Ints]:
        """First tiles, first samples and ends of the samples of all replicas."""
        first = np.array([first for first, _ in self.samples], dtype=np.int64)
        counts = np.array([count for _, count in self.samples], dtype=np.int64)
        return np.asarray(self.starts, dtype=np.int64), first, first + counts

    def replica_of(self, tile: int) -> int | None:
        """Return the replica on `tile`; None if the population has no neurons there."""
        found = int(np.searchsorted(self._order[0], tile, side="right")) - 1
        return found if found >= 0 and tile < self.starts[found] + self.width else None

    def samples_on(self, tiles: Ints, first: Ints, stop: Ints) -> Ints:
        """Return the number of samples ``[first, stop)`` that each of `tiles` processes; the arrays have equal lengths."""
        starts, begin, end = self._order
        replica = np.maximum(np.searchsorted(starts, tiles, side="right") - 1, 0)
        there = (tiles >= starts[replica]) & (tiles < starts[replica] + self.width)
        return np.where(there, np.maximum(np.minimum(stop, end[replica]) - np.maximum(first, begin[replica]), 0), 0)

    def windows_read(self, first: Ints, stop: Ints) -> Ints:
        """Return the number of windows that each tile of the population reads; windows have samples ``[first, stop)``, in order."""
        _, begin, end = self._order
        found: Ints = np.searchsorted(first, end, side="left") - np.searchsorted(stop, begin, side="right")
        return np.repeat(found, self.width)

    def replica_with(self, sample: int) -> int:
        """Return the replica that processes `sample`."""
        return int(np.searchsorted(self._order[2], sample, side="right"))

    def repeated(self, times: int, tiles: int, batch: int) -> TileRange:
        """Repeat all replicas, `times` times in total, each time shifted by `tiles` and for the next `batch` samples."""
        starts = tuple(s + k * tiles for k in range(times) for s in self.starts)
        samples = tuple((first + k * batch, count) for k in range(times) for first, count in self.samples)
        return TileRange(starts, self.neurons, samples, self.columns, paired=self.paired)


@dataclass(frozen=True, eq=False)
class ScatteredRange(TileRange):
    """One replica on arbitrary tiles, as in the baselines of placement.

    Attributes
    ----------
    places
        The tiles, in ascending order; `starts` contains the first of them.
    """

    places: Ints

    @classmethod
    def of_tiles(cls, places: Ints, neurons: Ints, batch: int, columns: int) -> ScatteredRange:
        """Put `neurons` on `places`, with all samples."""
        return cls((int(places[0]),), neurons, ((0, batch),), columns, places)

    @cached_property
    def tiles(self) -> Ints:
        """All tiles."""
        return self.places

    def index_of(self, replica: int, tile: int) -> int | None:
        """Return the index of `tile` among the tiles; None if it is not one of them."""
        del replica
        index = int(np.searchsorted(self.places, tile))
        return index if index < len(self.places) and self.places[index] == tile else None

    def samples_on(self, tiles: Ints, first: Ints, stop: Ints) -> Ints:
        """See :class:`TileRange`: all samples on each of `places`."""
        return np.where(np.isin(tiles, self.places), stop - first, 0)

    def contains(self, tiles: Ints) -> Bools:
        """See :class:`TileRange`."""
        return np.isin(tiles, self.places)[:, None]

    def replica_of(self, tile: int) -> int | None:
        """0 if the population is on `tile`, else None."""
        return None if self.index_of(0, tile) is None else 0
