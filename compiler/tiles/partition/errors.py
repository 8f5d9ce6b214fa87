"""Errors for populations that cannot be cut, and for partitioners that fail."""

from __future__ import annotations

from snnc.compiler.errors import SnncError


class UnreachedPartError(SnncError):
    """A part of a population would have no connection; the population stays whole, or other parts are tried."""

    code = "SNNC-E345"


class PartitionerError(SnncError):
    """The named partitioner is unknown or not installed."""

    code = "SNNC-E346"


class PartitionerCrashError(SnncError):
    """A partitioner from another package ended its process, or its output is not a partition."""

    code = "SNNC-E433"


class PartsError(SnncError):
    """A network cannot be cut into the requested parts, or its file of parts is damaged."""

    code = "SNNC-E347"
