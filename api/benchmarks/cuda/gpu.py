"""What a GPU can do at most, from its data sheet or from its driver."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Final

from snnc.backends.cuda.device import device_attributes, device_name, first_device

BARRIER_S: Final = 1.2e-6
"""A barrier of the whole grid through memory: assumed, to be measured."""
L2_OVER_MEMORY: Final = 5.5 / 4.8
"""Reads out of L2 over those out of memory, as assumed for an H200."""
_PROCESSORS, _CLOCK_KHZ, _MEMORY_KHZ, _BUS_BITS = 16, 13, 36, 37
"""CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, CLOCK_RATE, MEMORY_CLOCK_RATE, GLOBAL_MEMORY_BUS_WIDTH (CUdevice_attribute, cuda.h)."""


@dataclass(frozen=True)
class Gpu:
    """A device's peaks.

    Attributes
    ----------
    name
        As its driver calls it.
    memory_bytes_per_s, l2_bytes_per_s
        Bandwidths of memory, and of L2 (assumed).
    multiplications_per_s
        float32, each with an addition: half of what data sheets count as operations.
    barrier_s
        Latency of a barrier of the whole grid (assumed).
    """

    name: str
    memory_bytes_per_s: float
    l2_bytes_per_s: float
    multiplications_per_s: float
    barrier_s: float = BARRIER_S


H200: Final = Gpu("NVIDIA H200", 4.8e12, 5.5e12, 33.5e12)
"""Data sheet of the H200 SXM: 4.8 TB/s, 67 TFLOP/s float32."""


def gpu_here() -> Gpu:
    """Return the first device of this machine, its peaks from the clocks that its driver tells.

    Raises
    ------
    GpuMissingError
        There is none, or it is too old.
    """
    capability = first_device().capability
    processors, clock, memory_clock, bus = device_attributes(_PROCESSORS, _CLOCK_KHZ, _MEMORY_KHZ, _BUS_BITS)
    # Two transfers a clock of memory; float32 units of a multiprocessor by capability (CUDA programming guide, arithmetic throughput).
    bandwidth = 2 * 1e3 * memory_clock * bus / 8
    units = 64 if capability in ((7, 5), (8, 0)) else 128
    return Gpu(device_name(), bandwidth, L2_OVER_MEMORY * bandwidth, 1e3 * clock * processors * units)


def used_bytes() -> int | None:
    """Return what is taken of the first device's memory by all processes, as NVML tells; None where it does not."""

    class Memory(ctypes.Structure):
        _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))

    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return None
    handle, found = ctypes.c_void_p(), Memory()
    if library.nvmlInit_v2() != 0 or library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(handle)) != 0:
        return None
    return int(found.used) if library.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(found)) == 0 else None
