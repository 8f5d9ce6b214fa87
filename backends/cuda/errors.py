"""Errors of the CUDA backend."""

from __future__ import annotations

from snnc.compiler.errors import SnncError, ToolMissingError

CHECK_ON_HOST = "SNNC_CUDA_ON_HOST"
"""Environment variable: if set, kernels run on the CPU, which is slow but checks their results."""


class NvccMissingError(ToolMissingError, code="SNNC-E420"):
    """The CUDA compiler is not on this machine."""


class GpuMissingError(SnncError, code="SNNC-E421"):
    """The machine has no CUDA device, or none that the emitted program can use."""

    exit_code = 3


class DeviceArrayError(SnncError, code="SNNC-E422"):
    """An array in device memory has a different type, shape or memory order than the input."""


class HalfTogetherError(SnncError, code="SNNC-E660"):
    """The option `half` names history or deltas, but on GPUs 16 bits apply to the history, factors of products and deltas only together."""
