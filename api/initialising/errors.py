"""Errors of the initialisation of weights."""

from __future__ import annotations

from snnc.compiler.errors import SnncError


class InitialisationError(SnncError):
    """A network, its data or the numbers of an initialisation do not fit it."""

    code = "SNNC-E123"
