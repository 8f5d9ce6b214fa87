"""Errors of target files (SNNC-E3xx)."""

from __future__ import annotations

from snnc.compiler.errors import SnncError


class UnknownTargetError(SnncError, code="SNNC-E301"):
    """The target is neither a known name nor an existing file."""


class TargetFileError(SnncError, code="SNNC-E302"):
    """A target file is not TOML or cannot be read."""


class UnknownTargetKeyError(SnncError, code="SNNC-E303"):
    """A target file contains an unknown key."""


class MissingTargetKeyError(SnncError, code="SNNC-E304"):
    """A target file lacks a required key."""


class TargetValueError(SnncError, code="SNNC-E305"):
    """A value in a target file has the wrong type or is out of range."""


class LinksError(SnncError, code="SNNC-E330"):
    """A wire in a target file connects chips that do not exist, or a chip with itself, or its number of links is out of range."""


class UnreachableChipError(SnncError, code="SNNC-E331"):
    """The links of a target file do not connect all chips."""


class MachineSizeError(SnncError, code="SNNC-E332"):
    """A target file describes more chips or tiles than snnc maps onto."""
