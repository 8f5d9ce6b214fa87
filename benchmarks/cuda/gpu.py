"""Peak rates of a GPU from its data sheet or driver, device memory used by a process, and energy consumed by the device."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Final

from snnc.backends.cuda.device import device_attributes, device_name, first_device

BARRIER_S: Final = 1.2e-6
"""Duration of a grid-wide barrier through memory, in seconds: assumed, not yet measured."""
L2_OVER_MEMORY: Final = 5.5 / 4.8
"""Bandwidth of L2 relative to that of memory, as assumed for an H200."""
_PROCESSORS, _CLOCK_KHZ, _MEMORY_KHZ, _BUS_BITS = 16, 13, 36, 37
"""CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, CLOCK_RATE, MEMORY_CLOCK_RATE, GLOBAL_MEMORY_BUS_WIDTH (CUdevice_attribute, cuda.h)."""
_MAX_PROCESSES: Final = 256
_NOT_AVAILABLE: Final = 2**64 - 1
"""``NVML_VALUE_NOT_AVAILABLE`` of nvml.h."""


@dataclass(frozen=True)
class Gpu:
    """A device's peak rates, and the latency of its barrier."""

    name: str
    memory_bytes_per_s: float
    l2_bytes_per_s: float
    """Assumed, not measured."""
    multiplications_per_s: float
    """Rate of float32 multiply-adds: half of the rate of operations in data sheets."""
    barrier_s: float = BARRIER_S
    """Latency of a barrier of the whole grid, in seconds (assumed)."""


H200: Final = Gpu("NVIDIA H200", 4.8e12, 5.5e12, 33.5e12)
"""Data sheet of the H200 SXM: 4.8 TB/s, 67 TFLOP/s float32."""


def gpu_here() -> Gpu:
    """Return the first device of this machine, with peak rates computed from the clocks that its driver reports.

    Raise GpuMissingError if the machine has no device, or only one that is too old.
    """
    capability = first_device().capability
    processors, clock, memory_clock, bus = device_attributes(_PROCESSORS, _CLOCK_KHZ, _MEMORY_KHZ, _BUS_BITS)
    # Memory transfers data twice per clock. Float32 units of a multiprocessor: CUDA programming guide, "arithmetic throughput".
    bandwidth = 2 * 1e3 * memory_clock * bus / 8
    units = 64 if capability in ((7, 5), (8, 0)) else 128
    return Gpu(device_name(), bandwidth, L2_OVER_MEMORY * bandwidth, 1e3 * clock * processors * units)


class _Used(ctypes.Structure):
    """Device memory of a process (nvmlProcessInfo_t); its `number` is the process id."""

    _fields_ = (("number", ctypes.c_uint), ("bytes", ctypes.c_ulonglong), ("instance", ctypes.c_uint), ("compute_instance", ctypes.c_uint))


def used_bytes(process: int) -> int | None:
    """Return the bytes of the first device's memory that a process (by its id) uses, from NVML; None if NVML does not report them."""
    number, used = ctypes.c_uint(_MAX_PROCESSES), (_Used * _MAX_PROCESSES)()
    if not _ask_first_device("nvmlDeviceGetComputeRunningProcesses_v3", ctypes.byref(number), used):
        return None
    return next((int(one.bytes) for one in used[: number.value] if one.number == process and one.bytes != _NOT_AVAILABLE), None)


def consumed_joules() -> float | None:
    """Return the joules that the first device has consumed since its driver was loaded, from NVML; None if NVML does not report them.

    The counter covers the whole board and advances a few times per second (``nvmlDeviceGetTotalEnergyConsumption``, from Volta on).
    """
    millijoules = ctypes.c_ulonglong()
    return 1e-3 * millijoules.value if _ask_first_device("nvmlDeviceGetTotalEnergyConsumption", ctypes.byref(millijoules)) else None


def _ask_first_device(function: str, *results: object) -> bool:
    """Call an NVML function with the handle of the first device and `results`; return whether it succeeded."""
    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
        ask = getattr(library, function)
    except (OSError, AttributeError):
        return False
    handle = ctypes.c_void_p()
    if library.nvmlInit_v2() != 0 or library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(handle)) != 0:
        return False
    return bool(ask(handle, *results) == 0)
