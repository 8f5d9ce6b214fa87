"""Errors of emitting, building and running Poplar projects."""

from __future__ import annotations

from snnc.compiler.errors import SnncError


class UnsupportedOnPoplarError(SnncError):
    """The network holds something that the emitted Poplar program cannot do."""

    code = "SNNC-E410"


class PlanMismatchError(SnncError):
    """A plan does not belong to the program, or its blocks do not cover the neurons and samples once."""

    code = "SNNC-E411"
