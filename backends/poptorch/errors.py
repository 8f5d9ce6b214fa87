"""Errors of the PopTorch target."""

from __future__ import annotations

from snnc.compiler.errors import SnncError


class UnsupportedOnPopTorchError(SnncError, code="SNNC-E430"):
    """The plan or the network uses a feature that a custom operation of PopART does not support."""


class PopTorchFolderError(SnncError, code="SNNC-E431"):
    """A folder does not contain a package of the PopTorch target."""


class PopArtError(SnncError, code="SNNC-E432"):
    """The PopART substitute rejected an operation, or the operation failed on the emulator."""
