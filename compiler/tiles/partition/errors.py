"""Errors for populations that cannot be cut, and for partitioners that fail."""

from __future__ import annotations

from snnc.compiler.errors import SnncError


class UnreachedPartError(SnncError, code="SNNC-E345"):
    """A part of a population would have no connection; the population stays whole, or other parts are tried."""


class PartitionerError(SnncError, code="SNNC-E346"):
    """The named partitioner is unknown or not installed."""


class PartitionerCrashError(SnncError, code="SNNC-E433"):
    """A partitioner from another package ended its process, or its output is not a partition."""


class PartsError(SnncError, code="SNNC-E347"):
    """A network cannot be cut into the requested parts, or its file of parts is damaged."""
