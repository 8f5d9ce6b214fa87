"""Access to device arrays of other libraries through DLPack or the CUDA array interface, without importing these libraries."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any, Final

from snnc.compiler.ir.graph import Shape

_CUDA: Final = (2, 13)
_FLOAT: Final = 2
"""Numbers in dlpack.h: device types kDLCUDA and kDLCUDAManaged, and type code kDLFloat."""
_DEFAULT_STREAM: Final = 1
"""Number of the default stream in ``__dlpack__`` of the Python array API; its address is 0."""


class _DlTensor(ctypes.Structure):
    """``DLTensor`` of dlpack.h, the first member of ``DLManagedTensor``."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


@dataclass(frozen=True)
class DeviceArray:
    """Location of an array in memory."""

    address: int
    shape: Shape
    kind: str
    """Type of the elements: ``"float32"``, or a description of another type."""
    contiguous: bool
    """Whether it is dense and row-major."""
    owner: Any
    """Object that keeps the memory allocated."""


def device_array(array: Any, stream: int = 0) -> DeviceArray | None:
    """Return the location of an array of torch, CuPy, JAX … in device memory; None if `array` is in host memory or not an array.

    `stream` is the address of the program's stream, 0 for the default stream. With DLPack, this stream waits for pending work of the
    array's library on the array.
    """
    dlpack_device = getattr(array, "__dlpack_device__", None)
    if dlpack_device is not None and hasattr(array, "__dlpack__"):
        return _by_dlpack(array, stream or _DEFAULT_STREAM) if int(dlpack_device()[0]) in _CUDA else None
    interface = getattr(array, "__cuda_array_interface__", None)
    return None if interface is None else _by_interface(array, interface)


def _by_dlpack(array: Any, stream: int) -> DeviceArray:
    """Read the array through DLPack: https://data-apis.org/array-api/latest/API_specification/generated/array_api.array.__dlpack__.html."""
    capsule = array.__dlpack__(stream=stream)
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    tensor = ctypes.cast(pointer(capsule, b"dltensor"), ctypes.POINTER(_DlTensor)).contents
    shape = tuple(tensor.shape[axis] for axis in range(tensor.ndim))
    strides = None if not tensor.strides else tuple(tensor.strides[axis] for axis in range(tensor.ndim))
    kind = "float32" if (tensor.code, tensor.bits, tensor.lanes) == (_FLOAT, 32, 1) else f"type code {tensor.code} of {tensor.bits} bits"
    return DeviceArray((tensor.data or 0) + tensor.byte_offset, shape, kind, strides is None or _dense(shape, strides), capsule)


def _by_interface(array: Any, interface: Any) -> DeviceArray:
    """Read the array through the CUDA array interface: https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html."""
    shape, strides = tuple(interface["shape"]), interface.get("strides")
    kind = "float32" if interface["typestr"] == "<f4" else interface["typestr"]
    contiguous = strides is None or _dense(shape, tuple(stride / 4 for stride in strides))
    return DeviceArray(interface["data"][0], shape, kind, contiguous, array)


def _dense(shape: Shape, strides: tuple[float, ...]) -> bool:
    """Return whether an array with these strides, in elements, is dense and row-major; strides of axes of size 1 are ignored."""
    expected = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True
