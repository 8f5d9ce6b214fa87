"""Errors of target files (SNNC-E3xx)."""

from __future__ import annotations

from snnc.compiler.errors import SnncError


class UnknownTargetError(SnncError):
    """The target is neither a known name nor an existing file."""

    code = "SNNC-E301"


class TargetFileError(SnncError):
    """A target file is not TOML or cannot be read."""

    code = "SNNC-E302"


class UnknownTargetKeyError(SnncError):
    """A target file contains an unknown key."""

    code = "SNNC-E303"


class MissingTargetKeyError(SnncError):
    """A target file lacks a required key."""

    code = "SNNC-E304"


class TargetValueError(SnncError):
    """A number in a target file has the wrong type or is not positive."""

    code = "SNNC-E305"


class LinksError(SnncError):
    """A wire in a target file connects chips that do not exist, or a chip with itself, or has no links."""

    code = "SNNC-E330"


class UnreachableChipError(SnncError):
    """The links of a target file do not connect all chips."""

    code = "SNNC-E331"


class MachineSizeError(SnncError):
    """A target file describes more chips or tiles than snnc maps onto."""

    code = "SNNC-E332"
