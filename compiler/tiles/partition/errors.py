"""Errors of populations that cannot be cut, and of partitioners that fail."""

from __future__ import annotations

from snnc.compiler.errors import SnncError


class UnreachedPartError(SnncError):
    """A part of a population would have no connection of its own; the population stays whole, or other parts are tried."""

    code = "SNNC-E345"


class PartitionerError(SnncError):
    """A partitioner was named that is not known or not installed."""

    code = "SNNC-E346"


class PartitionerCrashError(SnncError):
    """A partitioner from another package ended its process, or answered with something that is not a partition."""

    code = "SNNC-E433"


class PartsError(SnncError):
    """A network was asked for in parts that it cannot be cut into, or its file of parts is damaged."""

    code = "SNNC-E347"
