"""Errors of weight initialisation."""

from __future__ import annotations

from snnc.compiler.errors import SnncError


class InitialisationError(SnncError, code="SNNC-E123"):
    """An initialisation does not fit the network or its data, or has an invalid setting."""
