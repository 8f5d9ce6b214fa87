"""Errors of emitting Poplar projects."""

from __future__ import annotations

from snnc.compiler.errors import SnncError


class UnsupportedOnPoplarError(SnncError, code="SNNC-E410"):
    """The network uses a feature that the emitted Poplar program does not support."""


class PlanMismatchError(SnncError, code="SNNC-E411"):
    """A plan does not belong to the program, or its blocks do not cover the neurons and samples exactly once."""
