"""Errors of the mapping and of reports (SNNC-E3xx)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from snnc.compiler.errors import SnncError


class MappingOptionError(SnncError):
    """The number of steps, samples or chips to map for is outside its range."""

    code = "SNNC-E310"


class CapacityError(SnncError):
    """A spike capacity or an activity is outside its range, or is given for a buffer that sends no spikes."""

    code = "SNNC-E311"


class NoScheduleError(SnncError):
    """A cycle of connections contains no delay, so no interval gives every population its inputs in time."""

    code = "SNNC-E312"


@dataclass(frozen=True)
class Knob:
    """Command-line options that may make a network fit, and the memory that the network needs with these options.

    Attributes
    ----------
    options
        Options and their values, in order.
    bytes
        Bytes on the fullest tile with these options.
    fits
        Whether the network fits with them.
    chips
        Number of processors that the plan uses with them; 0 if it does not fit.
    exact
        Whether `bytes` comes from a full plan with these options; if not, from a quick plan, and a full plan may need more or less.
    """

    options: tuple[tuple[str, str], ...]
    bytes: int
    fits: bool
    chips: int
    exact: bool = True

    @property
    def text(self) -> str:
        """The options as written on a command line."""
        return " ".join(f"{name} {value}" for name, value in self.options)


class TooBigError(SnncError):
    """A tile would need more memory than it has.

    Attributes
    ----------
    needed, available
        Bytes on the fullest tile of the plan that comes closest to fitting, and the memory of a tile.
    phase
        The superstep in which that tile needs these bytes.
    tile, layer
        That tile (None if no placement exists), and the author's name of the layer on it (empty for relays).
    category, category_bytes
        The largest category of data on it, and its bytes.
    knobs
        The options that help most, best first.
    """

    code = "SNNC-E313"

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
        knobs: tuple[Knob, ...] = (),
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


class OutputsTooBigError(TooBigError):
    """The outputs of a sequence alone need many times the available memory, so no plan is searched."""

    code = "SNNC-E263"


class ReportOptionError(SnncError):
    """The requested format of a report is unknown, or its profile cannot be read."""

    code = "SNNC-E315"


class PublishedNetError(SnncError):
    """The published per-layer program cannot express the network."""

    code = "SNNC-E316"


class PublishedOptionError(SnncError):
    """An option of the model of the published program is outside its range."""

    code = "SNNC-E317"


class PublishedLayoutError(SnncError):
    """The layers do not fit the target in the published layout."""

    code = "SNNC-E318"


class StrategyError(SnncError):
    """No placement strategy has this name."""

    code = "SNNC-E323"


class NoPartitionerError(SnncError):
    """The graph partitioner that a strategy uses is not installed."""

    code = "SNNC-E324"


class BaselineTooBigError(TooBigError):
    """No form of a baseline fits; `needed` is the number of bytes on the fullest tile of the form that comes closest to fitting."""

    code = "SNNC-E325"

    def __init__(self, text: str, needed: int) -> None:
        super().__init__(text)
        self.needed = needed


class PictureToolError(SnncError):
    """A report as PNG needs Pillow, which is not installed."""

    code = "SNNC-E319"
    exit_code = 3
