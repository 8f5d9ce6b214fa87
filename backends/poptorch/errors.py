"""Errors of the PopTorch target."""

from __future__ import annotations

from snnc.compiler.errors import SnncError


class UnsupportedOnPopTorchError(SnncError):
    """The plan or the network uses a feature that a custom operation of PopART does not support."""

    code = "SNNC-E430"


class PopTorchFolderError(SnncError):
    """A folder does not contain a package of the PopTorch target."""

    code = "SNNC-E431"


class PopArtError(SnncError):
    """The PopART substitute rejected an operation, or the operation failed on the emulator."""

    code = "SNNC-E432"
