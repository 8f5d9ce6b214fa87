"""Search for a CUDA device through the driver, without the toolkit."""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from typing import Any, Final

from snnc.backends.cuda.errors import CHECK_ON_HOST, GpuMissingError

DEVICE: Final = "SNNC_CUDA_DEVICE"
"""Environment variable: number of the device on which sessions open."""
LOCAL_RANK: Final = "LOCAL_RANK"
"""Environment variable of ``torchrun``: index of the process on this machine."""
MIN_CAPABILITY: Final = (7, 5)
"""Minimum compute capability of a device (sm_75)."""
_DRIVER: Final = "libcuda.so.1"
_MAJOR: Final = 75
_MINOR: Final = 76
"""Attribute numbers of the driver API (CUdevice_attribute in cuda.h)."""
_HELP: Final = (
    f"Emitting a project needs no device (snnc compile --target cuda -o FOLDER). Set {CHECK_ON_HOST}=1 to run its kernels on the CPU, "
    "slowly, as a check, or train with --target cpu."
)


@dataclass(frozen=True)
class Device:
    """A CUDA device: its compute capability, bytes of memory, and number."""

    capability: tuple[int, int]
    memory: int
    number: int = 0

    @property
    def architecture(self) -> str:
        """The name of the architecture for nvcc, such as ``"sm_90"``."""
        return f"sm_{self.capability[0]}{self.capability[1]}"


def first_device() -> Device:
    """Return the device on which sessions open: that of the variable :data:`DEVICE`, else that of :data:`LOCAL_RANK`, else the first one.

    Raises a GpuMissingError if this machine has no CUDA device, or not the one that the variable names, or the device is too old.
    """
    driver, device = _driver_and_device()
    major, minor = (_attribute(driver, device, number) for number in (_MAJOR, _MINOR))
    if (major, minor) < MIN_CAPABILITY:
        has, least = (".".join(map(str, pair)) for pair in ((major, minor), MIN_CAPABILITY))
        raise GpuMissingError(f"the CUDA device has compute capability {has}; {least} or newer is needed. {_HELP}")
    memory = ctypes.c_size_t(0)
    driver.cuDeviceTotalMem_v2(ctypes.byref(memory), device)
    return Device((major, minor), memory.value, device.value)


def device_attributes(*numbers: int) -> list[int]:
    """Return attributes of :func:`first_device`, numbered as in cuda.h (CUdevice_attribute); raise a GpuMissingError if there is none."""
    driver, device = _driver_and_device()
    return [_attribute(driver, device, number) for number in numbers]


def device_name() -> str:
    """Return the driver's name of :func:`first_device`; raise a GpuMissingError if there is none."""
    driver, device = _driver_and_device()
    text = ctypes.create_string_buffer(256)
    driver.cuDeviceGetName(text, len(text), device)
    return text.value.decode(errors="replace")


def _driver_and_device() -> tuple[Any, ctypes.c_int]:
    try:
        driver = ctypes.CDLL(_DRIVER)
    except OSError:
        raise GpuMissingError(f"there is no CUDA driver on this machine ({_DRIVER} is not found). {_HELP}") from None
    count = ctypes.c_int(0)
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0 or count.value == 0:
        raise GpuMissingError(f"the CUDA driver of this machine finds no device. {_HELP}")
    variable, named = next(((v, os.environ[v]) for v in (DEVICE, LOCAL_RANK) if os.environ.get(v)), (DEVICE, "0"))
    if variable == LOCAL_RANK and count.value == 1:
        named = "0"  # the launcher may make only one device visible to each process
    if not named.isdecimal() or int(named) >= count.value:
        raise GpuMissingError(f"{variable} is {named!r}; the CUDA driver of this machine finds {count.value} devices, from 0. {_HELP}")
    device = ctypes.c_int(0)
    driver.cuDeviceGet(ctypes.byref(device), int(named))
    return driver, device


def _attribute(driver: Any, device: ctypes.c_int, number: int) -> int:
    value = ctypes.c_int(0)
    driver.cuDeviceGetAttribute(ctypes.byref(value), number, device)
    return value.value
