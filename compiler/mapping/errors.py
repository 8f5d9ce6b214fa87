"""Errors of targets, of the mapping and of reports (SNNC-E3xx)."""

from __future__ import annotations

from snnc.compiler.errors import SnncError


class UnknownTargetError(SnncError):
    """The target is neither a name that snnc knows nor a file that exists."""

    code = "SNNC-E301"


class TargetFileError(SnncError):
    """A target file is not TOML or cannot be read."""

    code = "SNNC-E302"


class UnknownTargetKeyError(SnncError):
    """A target file holds a key that no target has."""

    code = "SNNC-E303"


class MissingTargetKeyError(SnncError):
    """A target file lacks a key that every target has."""

    code = "SNNC-E304"


class TargetValueError(SnncError):
    """A number of a target file has the wrong type or is not positive."""

    code = "SNNC-E305"


class MappingOptionError(SnncError):
    """The number of steps, samples or chips to map for is outside its range."""

    code = "SNNC-E310"


class CapacityError(SnncError):
    """A spike capacity or an activity is outside its range, or names a buffer that moves no spikes."""

    code = "SNNC-E311"


class NoScheduleError(SnncError):
    """A cycle of connections holds no delay, so no interval gives every population its inputs in time."""

    code = "SNNC-E312"


class TooBigError(SnncError):
    """A tile would have to hold more than its memory."""

    code = "SNNC-E313"


class PlanFileError(SnncError):
    """A file is not a plan that this version of snnc wrote."""

    code = "SNNC-E314"


class ReportOptionError(SnncError):
    """A report was asked for in a format that snnc cannot write, or with a profile that it cannot read."""

    code = "SNNC-E315"


class PublishedNetError(SnncError):
    """The published per-layer program cannot express the network."""

    code = "SNNC-E316"


class PublishedOptionError(SnncError):
    """A number given to the model of the published program is outside its range."""

    code = "SNNC-E317"


class PublishedLayoutError(SnncError):
    """The published layout finds no place for the layers on the target."""

    code = "SNNC-E318"


class StrategyError(SnncError):
    """The text names no strategy of placement that snnc knows."""

    code = "SNNC-E323"


class NoPartitionerError(SnncError):
    """The graph partitioner that a strategy is made of is not installed."""

    code = "SNNC-E324"


class BaselineTooBigError(TooBigError):
    """In every form of a baseline some tile would have to hold more than its memory; `needed` is how many bytes."""

    code = "SNNC-E325"

    def __init__(self, text: str, needed: int) -> None:
        super().__init__(text)
        self.needed = needed
