"""Errors of the PopTorch target."""

from __future__ import annotations

from snnc.compiler.errors import SnncError


class UnsupportedOnPopTorchError(SnncError):
    """The plan or the network holds something that a custom operation of PopART cannot do."""

    code = "SNNC-E430"


class PopTorchFolderError(SnncError):
    """A folder holds no package that the PopTorch target wrote."""

    code = "SNNC-E431"


class PopArtError(SnncError):
    """The stand-in of PopART refused an operation, or the operation failed on the emulator."""

    code = "SNNC-E432"
