"""Errors of emitting, building and running Poplar projects."""

from __future__ import annotations

from snnc.compiler.errors import SnncError


class UnsupportedOnPoplarError(SnncError):
    """The network uses a feature that the emitted Poplar program does not support."""

    code = "SNNC-E410"


class PlanMismatchError(SnncError):
    """A plan does not belong to the program, or its blocks do not cover the neurons and samples exactly once."""

    code = "SNNC-E411"
