"""What cannot be cut into parts, or no partitioner cuts."""

from __future__ import annotations

from snnc.compiler.errors import SnncError


class UnreachedPartError(SnncError):
    """A part of a population would have no connection of its own; the population stays whole, or other parts are tried."""

    code = "SNNC-E345"
