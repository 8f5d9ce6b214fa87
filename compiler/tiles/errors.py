"""Errors of the mapping, of partitions and of reports (SNNC-E3xx, SNNC-E263 and SNNC-E433)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from snnc.compiler.errors import SnncError


class MappingOptionError(SnncError, code="SNNC-E310"):
    """The number of steps, samples or chips to map for is outside its range."""


class CapacityError(SnncError, code="SNNC-E311"):
    """A spike capacity or an activity is outside its range, or is given for a source that sends no spikes."""


class NoScheduleError(SnncError, code="SNNC-E312"):
    """A cycle of connections contains no delay, so no interval gives every population its inputs in time."""


@dataclass(frozen=True)
class Remedy:
    """Command-line options that may make a network fit, and the memory that the network needs with these options."""

    options: tuple[tuple[str, str], ...]
    bytes: int
    """Bytes on the fullest tile."""
    chips: int
    """Number of chips that the plan uses; 0 if the network does not fit."""
    exact: bool = True
    """Whether `bytes` comes from a full plan; otherwise it is an estimate, and a full plan may need more or less."""

    @property
    def fits(self) -> bool:
        """Whether the network fits."""
        return self.chips > 0

    @property
    def text(self) -> str:
        """The options as written on a command line."""
        return " ".join(f"{name} {value}" for name, value in self.options)


class TooBigError(SnncError, code="SNNC-E313"):
    """A tile would need more memory than it has.

    Attributes
    ----------
    needed, available
        Bytes on the fullest tile of the plan that comes closest to fitting, and the memory of a tile.
    phase
        The superstep in which the fullest tile needs these bytes.
    tile, layer
        The fullest tile (None if no placement exists), and the layer on it as the model names it (empty for relays).
    category, category_bytes
        The largest category of data on the fullest tile, and its bytes.
    knobs
        The options that help most, best first.
    """

    def __init__(
        self,
        text: str,
        *,
        needed: int = 0,
        available: int = 0,
        tile: int | None = None,
        phase: str = "",
        layer: str = "",
        category: str = "",
        category_bytes: int = 0,
        knobs: tuple[Remedy, ...] = (),
    ) -> None:
        super().__init__(text)
        self.needed, self.available, self.tile, self.phase, self.layer = needed, available, tile, phase, layer
        self.category, self.category_bytes, self.knobs = category, category_bytes, knobs

    @property
    def data(self) -> dict[str, Any]:
        """All attributes as JSON types."""
        names = ("needed", "available", "tile", "phase", "layer", "category", "category_bytes")
        knobs = [{"options": dict(k.options), "bytes": k.bytes, "fits": k.fits, "chips": k.chips, "exact": k.exact} for k in self.knobs]
        return {**{name: getattr(self, name) for name in names}, "knobs": knobs}


class OutputsTooBigError(TooBigError, code="SNNC-E263"):
    """The outputs of a sequence alone need many times the available memory, so snnc does not search for a plan."""


class ReportOptionError(SnncError, code="SNNC-E315"):
    """The requested format of a report is unknown, or its profile cannot be read."""


class PublishedOptionError(SnncError, code="SNNC-E317"):
    """A layer of the model of the published IPU program (arXiv 2311.04386) has a number outside its range."""


class PublishedLayoutError(SnncError, code="SNNC-E318"):
    """The layers do not fit the target in the layout of the published IPU program (arXiv 2311.04386)."""


class StrategyError(SnncError, code="SNNC-E323"):
    """No placement strategy has this name."""


class NoPartitionerError(SnncError, code="SNNC-E324"):
    """The graph partitioner that a strategy uses is not installed."""


class BaselineTooBigError(TooBigError, code="SNNC-E325"):
    """No variant of a baseline, a simple mapping to compare plans with, fits; the smallest one needs `needed` bytes on its fullest tile."""


class PictureToolError(SnncError, code="SNNC-E319"):
    """A report as PNG needs Pillow, which is not installed."""

    exit_code = 3


class UnreachedPartError(SnncError, code="SNNC-E345"):
    """A part of a population would have no connection; the population stays whole, or other parts are tried."""


class PartitionerError(SnncError, code="SNNC-E346"):
    """The named partitioner is unknown or not installed."""


class PartitionerCrashError(SnncError, code="SNNC-E433"):
    """A partitioner from another package ended its process, or its output is not a partition."""


class PartsError(SnncError, code="SNNC-E347"):
    """A network cannot be cut into the requested parts, or its file of parts is damaged."""
