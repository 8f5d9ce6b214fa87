"""The layout of the published program.

A layer uses a contiguous range of tiles of one IPU, with an equal number of neurons on each (fewer on the last); tile 0 of the first IPU is
not used. The number of neurons per tile starts at 2 and grows by 2 until all layers fit (``benchmarking/tile_mapping.py`` of
``jrfinkbeiner/graphcore_snn``, confirmed by the tile ranges that the log prints).
"""

from __future__ import annotations

from dataclasses import dataclass

from snnc.benchmarks.published.net import PublishedNet
from snnc.benchmarks.published.options import LINEAR_BYTES, WORKER_SHARE
from snnc.compiler.machines.target import Target
from snnc.compiler.tiles.errors import PublishedLayoutError

NEURON_STEP = 2
"""Smallest number of neurons per tile, and step by which it grows."""


@dataclass(frozen=True)
class Range:
    """Tiles of a layer: ``[first, first + tiles)``, all on chip `chip`, with `neurons` neurons on each (fewer on the last)."""

    first: int
    tiles: int
    neurons: int
    chip: int

    @property
    def stop(self) -> int:
        """The index after the last tile."""
        return self.first + self.tiles


@dataclass(frozen=True)
class PublishedLayout:
    """Tile ranges of all layers, and tiles that compact their spikes, that is, convert flags of neurons to lists of ids."""

    ranges: tuple[Range, ...]
    """One per layer, in the order of ``net.layers``."""
    spread: tuple[int, ...]
    """Number of tiles that compact the flags of one sample and threshold, for each layer."""
    max_compactions: tuple[int, ...]
    """Number of compactions on the busiest tile, for each chip; 1 if there are enough tiles."""

    @property
    def chips(self) -> int:
        """Number of chips in use."""
        return self.ranges[-1].chip + 1

    def layers_of(self, chip: int) -> tuple[int, ...]:
        """Return the layers on `chip`."""
        return tuple(i for i, where in enumerate(self.ranges) if where.chip == chip)


def lay_out(net: PublishedNet, target: Target) -> PublishedLayout:
    """Place the layers of `net`.

    Raise PublishedLayoutError if they do not fit on the tiles, or the chips are not linked.
    """
    most = max(layer.neurons for layer in net.layers)
    for neurons in range(NEURON_STEP, most + 2 * NEURON_STEP, NEURON_STEP):
        ranges = _ranges(net, target, neurons)
        if ranges is not None and ranges[-1].chip and not target.link_bytes_per_second:
            raise PublishedLayoutError(f"{net.name!r} needs {ranges[-1].chip + 1} chips of {target.name}, and nothing links them.")
        if ranges is not None:
            spread = tuple(spread_factor(layer.neurons, target.workers) for layer in net.layers)
            jobs = [0] * (ranges[-1].chip + 1)
            for factor, where in zip(spread, ranges, strict=True):
                jobs[where.chip] += 2 * net.batch * factor
            return PublishedLayout(ranges, spread, tuple(max(1, ceil_div(n, target.tiles_per_chip)) for n in jobs))
    raise PublishedLayoutError(
        f"{net.name!r} has {len(net.layers)} layers, and {target.name} {target.chips} chip(s) with {target.tiles_per_chip} tiles of "
        f"{target.workers} workers: no layer may share a tile or straddle chips, so they do not fit. Choose a target with more tiles."
    )


def _ranges(net: PublishedNet, target: Target, neurons: int) -> tuple[Range, ...] | None:
    """Fill one chip after another with `neurons` neurons per tile; return None if the layers do not fit."""
    ranges, chip, used = [], 0, 0
    for layer in net.layers:
        tiles = ceil_div(layer.neurons, neurons)
        if used + tiles > usable_tiles(target, chip):
            chip, used = chip + 1, 0
        if chip >= target.chips or tiles > usable_tiles(target, chip):
            return None
        offset = target.tiles_per_chip - usable_tiles(target, chip)
        ranges.append(Range(chip * target.tiles_per_chip + offset + used, tiles, neurons, chip))
        used += tiles
    return tuple(ranges)


def usable_tiles(target: Target, chip: int) -> int:
    """Return the number of usable tiles of a chip; the first tile of the first chip is reserved for scalars."""
    return target.tiles_per_chip - (chip == 0)


def spread_factor(neurons: int, workers: int) -> int:
    """Return the number of tiles that share the compaction of one sample and threshold, about 64 neurons per worker.

    The rule is that of ``determine_layerwise_tile_spread_factor`` in the published code; the log prints 4 for 1466 neurons, 3 for 978, 2
    for 734 and 586, 1 for 10.
    """
    share = neurons // WORKER_SHARE + (neurons % WORKER_SHARE > WORKER_SHARE // 2)
    return max(share // workers + (share % workers >= 2), 1)


def ceil_div(a: int, b: int) -> int:
    """Round ``a / b`` up."""
    return -(-a // b)


# ---- tensors that are not tied to a layer's tiles ---------------------------------------------------------------------


def slice_share(elements: int, tiles: int) -> int:
    """Return the number of elements per time step on a tile, for a tensor sliced in time (``popops::createSliceableTensor``)."""
    return ceil_div(elements, tiles)


def slice_pieces(elements: int, tiles: int) -> int:
    """Return the number of tiles that store one time step of a tensor sliced in time."""
    return ceil_div(elements, slice_share(elements, tiles))


def linear_share(elements: int, tiles: int) -> int:
    """Return the number of 4-byte elements on a tile, for a linearly mapped tensor: an even number (``poputil::calcLinearTileMapping``)."""
    return max(LINEAR_BYTES // 4, 2 * ceil_div(ceil_div(elements, tiles), 2))


def linear_pieces(elements: int, tiles: int) -> int:
    """Return the number of tiles that store a linearly mapped tensor."""
    return ceil_div(elements, linear_share(elements, tiles))
