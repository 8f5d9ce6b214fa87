"""Errors for missing requirements of an emitted CUDA program."""

from __future__ import annotations

from snnc.compiler.errors import SnncError, ToolMissingError

CHECK_ON_HOST = "SNNC_CUDA_ON_HOST"
"""Environment variable: when set, kernels run on the processor, slowly, to check their numbers."""


class NvccMissingError(ToolMissingError):
    """The CUDA compiler is not on this machine."""

    code = "SNNC-E420"


class GpuMissingError(SnncError):
    """There is no CUDA device, or none that the emitted program can use."""

    code = "SNNC-E421"
    exit_code = 3


class DeviceArrayError(SnncError):
    """An array in device memory has a different type, shape or order than the input."""

    code = "SNNC-E422"


class HalfTogetherError(SnncError):
    """A program for a GPU stores pasts, factors of products and deltas as 16-bit numbers together, not some of them."""

    code = "SNNC-E660"
