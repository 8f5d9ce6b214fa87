"""Python binding of the C ABI of emitted shared libraries (``snnc_abi.h``): tensors by name, as NumPy arrays."""

from __future__ import annotations

import ctypes
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any, Final

import numpy as np

from snnc.compiler.errors import SnncError
from snnc.compiler.ir.graph import Array

ABI_VERSION: Final = 2
SHARED_SOURCES: Final = (
    "snnc_abi.h",
    "snnc_abi.cpp",
    "snnc_session.hpp",
    "snnc_targets.hpp",
    "snnc_files.hpp",
    "snnc_files.cpp",
    "snnc_main.cpp",
)
"""Sources of the ABI in every native project."""
_MAX_RANK: Final = 8


class NativeError(SnncError, code="SNNC-E415"):
    """A call of an emitted program failed, or was given a wrong tensor name or size."""


class NativeLibraryError(SnncError, code="SNNC-E416"):
    """A shared library cannot be loaded, or a project was emitted by an incompatible version of snnc."""


class Role(IntEnum):
    """Purpose of a tensor of the ABI; ``snnc_role`` in ``snnc_abi.h`` describes each."""

    INPUT = 0
    RECORD = 1
    PARAMETER = 2
    GRADIENT = 3
    STATE = 4
    LABEL = 5
    SETTING = 6
    COUNTER = 7
    RESULT = 8
    MOMENT = 9
    NEXT = 10


@dataclass(frozen=True)
class TensorInfo:
    """Name, role, element type and shape of a tensor of the ABI."""

    name: str
    role: Role
    dtype: np.dtype[Any]
    shape: tuple[int, ...]


class _AbiTensor(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_int32),
        ("role", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("shape", ctypes.c_uint64 * _MAX_RANK),
    )


class NativeSession:
    """An opened project: sets and reads its tensors, and runs it. `folder` contains the project's weights and tables.

    Raises a NativeLibraryError or NativeError if the library is incompatible, or cannot open the project.
    """

    def __init__(self, library: Path, folder: Path) -> None:
        self._handle: int | None = None
        self._library = _load(library)
        self._handle = self._library.snnc_open(str(folder).encode())
        if not self._handle:
            raise NativeError(f"the program in {folder} cannot be opened: {self._message()}.")
        self.tensors: dict[str, TensorInfo] = {}
        self.refresh()

    def refresh(self) -> None:
        """Read names and shapes of the tensors; needed again after a change of a setting that affects them."""
        self.tensors = {}
        for index in range(self._library.snnc_tensor_count(self._open())):
            raw = _AbiTensor()
            self._check(self._library.snnc_tensor_info(self._open(), index, ctypes.byref(raw)))
            dtype: np.dtype[Any] = np.dtype(np.float32 if raw.type == 0 else np.int32)
            name = raw.name.decode()
            self.tensors[name] = TensorInfo(name, Role(raw.role), dtype, tuple(raw.shape[: raw.rank]))

    def with_role(self, role: Role) -> dict[str, TensorInfo]:
        """Return all tensors of one role."""
        return {name: info for name, info in self.tensors.items() if info.role == role}

    def set(self, name: str, values: Array) -> None:
        """Copy an array into a tensor with the same number of elements; numbers are converted to the tensor's type."""
        info = self._info(name)
        array = np.ascontiguousarray(values, dtype=info.dtype)
        if array.size != math.prod(info.shape):
            raise NativeError(f"the tensor {name} has shape {list(info.shape)}, but the array has {list(array.shape)}.")
        self._check(self._library.snnc_set_tensor(self._open(), name.encode(), array.ctypes.data, array.nbytes))

    def set_events(self, name: str, begin: Array, ids: Array) -> None:
        """Set an input to 1 at its events; see ``snnc_set_events`` in ``snnc_abi.h``."""
        begin, ids = np.ascontiguousarray(begin, dtype=np.uint64), np.ascontiguousarray(ids, dtype=np.uint32)
        begin_address, id_address = (a.ctypes.data_as(ctypes.c_void_p) for a in (begin, ids))
        self._check(self._library.snnc_set_events(self._open(), name.encode(), begin_address, len(begin) - 1, id_address, len(ids)))

    def set_from(self, name: str, address: int, elements: int) -> None:
        """Let the program copy a tensor from `address` in host or device memory, where values of the tensor's type are stored."""
        self._copy(self._library.snnc_set_tensor, name, address, elements)

    def get_into(self, name: str, address: int, elements: int) -> None:
        """Let the program copy a tensor to `address` in host or device memory, as values of the tensor's type."""
        self._copy(self._library.snnc_get_tensor, name, address, elements)

    def _copy(self, function: Callable[..., int], name: str, address: int, elements: int) -> None:
        info = self._info(name)
        if elements != math.prod(info.shape):
            raise NativeError(f"the tensor {name} has shape {list(info.shape)}, but the given memory has {elements} elements.")
        self._check(function(self._open(), name.encode(), ctypes.c_void_p(address), elements * info.dtype.itemsize))

    def get(self, name: str) -> Array:
        """Return a copy of a tensor."""
        info = self._info(name)
        array = np.empty(info.shape, dtype=info.dtype)
        self._check(self._library.snnc_get_tensor(self._open(), name.encode(), array.ctypes.data, array.nbytes))
        return array

    def run(self) -> None:
        """Run a sequence forward."""
        self._check(self._library.snnc_run(self._open()))

    def train_step(self) -> float:
        """Run a training step and return the loss."""
        loss = ctypes.c_float()
        self._check(self._library.snnc_train_step(self._open(), ctypes.byref(loss)))
        return loss.value

    def profile(self) -> dict[str, Any]:
        """Return counters and times of the session so far."""
        text = self._library.snnc_profile(self._open())
        if text is None:
            raise NativeError(f"the emitted program returned no profile: {self._message()}.")
        profile: dict[str, Any] = json.loads(text.decode())
        return profile

    def save(self, path: Path) -> None:
        """Write the parameters to a safetensors file."""
        self._check(self._library.snnc_save(self._open(), str(path).encode()))

    def close(self) -> None:
        """Free the session; further calls raise an error."""
        if self._handle:
            self._library.snnc_close(self._handle)
        self._handle = None

    def __del__(self) -> None:
        self.close()

    def _open(self) -> int:
        if not self._handle:
            raise NativeError("the session is closed.")
        return self._handle

    def _info(self, name: str) -> TensorInfo:
        if name not in self.tensors:
            raise NativeError(f"there is no tensor {name!r}; the program has {', '.join(self.tensors)}.")
        return self.tensors[name]

    def _message(self) -> str:
        return str(self._library.snnc_last_error().decode(errors="replace"))

    def _check(self, status: int) -> None:
        if status != 0:
            raise NativeError(f"the emitted program failed: {self._message()}.")


def _load(path: Path) -> Any:
    try:
        library = ctypes.CDLL(str(path))
        version = library.snnc_abi_version()
    except (OSError, AttributeError) as error:
        raise NativeLibraryError(f"{path} cannot be loaded: {error}.") from None
    if version != ABI_VERSION:
        raise NativeLibraryError(
            f"{path} has version {version} of the ABI, but this snnc has version {ABI_VERSION}; emit the project again."
        )
    session, text, number = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int32
    signatures: dict[str, tuple[Callable[..., Any] | type[Any] | None, list[Any]]] = {
        "snnc_open": (session, [text]),
        "snnc_close": (None, [session]),
        "snnc_tensor_count": (number, [session]),
        "snnc_tensor_info": (number, [session, number, ctypes.POINTER(_AbiTensor)]),
        "snnc_set_tensor": (number, [session, text, ctypes.c_void_p, ctypes.c_uint64]),
        "snnc_set_events": (number, [session, text, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint64]),
        "snnc_get_tensor": (number, [session, text, ctypes.c_void_p, ctypes.c_uint64]),
        "snnc_run": (number, [session]),
        "snnc_train_step": (number, [session, ctypes.POINTER(ctypes.c_float)]),
        "snnc_profile": (text, [session]),
        "snnc_save": (number, [session, text]),
        "snnc_last_error": (text, []),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library
