"""Execution of PopART custom operations through snnc's substitute for PopART, which runs them on the emulator.

Operations run one at a time, with NumPy arrays as inputs and outputs. To *lower* an operation is to add it to a Poplar graph.
"""

from __future__ import annotations

import ctypes
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from snnc.backends.poptorch.build import popart_library
from snnc.backends.poptorch.errors import PopArtError

Array = npt.NDArray[np.float32]
KINDS: Final = ("in", "out", "gradient")
"""Kinds of inputs of a gradient operation, in the order of ``GradOpInType``."""


@dataclass(frozen=True)
class GradientInput:
    """An input of a gradient operation: input or output `number` of the forward operation, or the gradient of output `number`."""

    kind: str
    number: int


class RunningOperation:
    """A lowered operation, in a Poplar graph that contains no other operation; `runtime` is the library of the PopART substitute."""

    def __init__(self, runtime: ctypes.CDLL, handle: int) -> None:
        self._runtime, self._handle = runtime, handle
        self.shapes = tuple(self._shape(index) for index in range(runtime.snnc_popart_outputs(handle)))

    def run(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Run the operation and return its outputs.

        Raises a PopArtError if the program fails, or writes an input in place.
        """
        arrays = [np.ascontiguousarray(array, dtype=np.float32) for array in inputs]
        outputs = tuple(np.empty(shape, dtype=np.float32) for shape in self.shapes)
        if self._runtime.snnc_popart_run(self._handle, _pointers(arrays), _pointers(outputs)):
            raise PopArtError(_message(self._runtime))
        return outputs

    def profile(self) -> dict[str, Any]:
        """Return the emulator's profile of all runs of the operation."""
        text = self._runtime.snnc_popart_profile(self._handle)
        if text is None:
            raise PopArtError(_message(self._runtime))
        profile: dict[str, Any] = json.loads(text)
        return profile

    def gradient(self) -> GradientOperation:
        """Open the gradient operation.

        Raises a PopArtError if the operation has no gradient, or the gradient cannot be lowered.
        """
        handle = self._runtime.snnc_popart_open_gradient(self._handle)
        if not handle:
            raise PopArtError(_message(self._runtime))
        return GradientOperation(self._runtime, handle)

    def close(self) -> None:
        """Free the operation."""
        self._runtime.snnc_popart_close(self._handle)

    def _shape(self, index: int) -> tuple[int, ...]:
        sizes = (ctypes.c_int64 * 8)()  # the library writes at most 8 sizes
        return tuple(sizes[: self._runtime.snnc_popart_output_shape(self._handle, index, sizes)])


class GradientOperation(RunningOperation):
    """The gradient operation of a forward operation."""

    @property
    def sources(self) -> tuple[GradientInput, ...]:
        """The origin of each input."""
        sources = []
        for index in range(self._runtime.snnc_popart_inputs(self._handle)):
            number = ctypes.c_int()
            kind = self._runtime.snnc_popart_gradient_input(self._handle, index, ctypes.byref(number))
            sources.append(GradientInput(KINDS[kind], number.value))
        return tuple(sources)

    @property
    def targets(self) -> tuple[int, ...]:
        """For each output, the index of the forward input whose gradient it is."""
        return tuple(self._runtime.snnc_popart_gradient_output(self._handle, index) for index in range(len(self.shapes)))


def open_operation(
    domain: str,
    name: str,
    version: int,
    attributes: Mapping[str, str],
    shapes: Sequence[Sequence[int]],
    *,
    machine: str,
    tiles: int = 0,
    ipus: int = 1,
) -> RunningOperation:
    """Lower an operation that a loaded library registered.

    Raises a PopArtError if no library registers the operation, or it rejects its arguments.

    `domain`, `name` and `version` identify the operation. `attributes` are strings by name, and `shapes` those of all inputs, which are
    float32. `machine` is ``"ipu1"``, ``"ipu2"`` or ``"ipu21"``, `tiles` the number of tiles of an IPU (0: all tiles of that machine), and
    `ipus` the number of IPUs of the machine; the operation is on the first one.
    """
    runtime = _runtime()
    keys, values = ((ctypes.c_char_p * len(attributes))(*(text.encode() for text in texts)) for texts in (attributes, attributes.values()))
    ranks = (ctypes.c_uint * len(shapes))(*map(len, shapes))
    flat = [size for shape in shapes for size in shape]
    sizes = (ctypes.c_int64 * len(flat))(*flat)
    handle = runtime.snnc_popart_open(
        domain.encode(), name.encode(), version, len(attributes), keys, values, len(shapes), ranks, sizes, machine.encode(), tiles, ipus
    )
    if not handle:
        raise PopArtError(_message(runtime))
    return RunningOperation(runtime, handle)


def load_operation(library: Path) -> None:
    """Load a library; it registers its operations."""
    _runtime()
    try:
        ctypes.CDLL(str(library))
    except OSError as error:
        raise PopArtError(f"the operation {str(library)!r} cannot be loaded: {error}") from None


def _runtime() -> ctypes.CDLL:
    """Load the substitute with global symbols, because operations register themselves in it."""
    runtime = ctypes.CDLL(str(popart_library()), mode=ctypes.RTLD_GLOBAL)
    pointer = ctypes.c_void_p
    runtime.snnc_popart_error.restype = runtime.snnc_popart_profile.restype = ctypes.c_char_p
    runtime.snnc_popart_open.restype = runtime.snnc_popart_open_gradient.restype = pointer
    for name in ("open_gradient", "close", "inputs", "outputs", "profile"):
        getattr(runtime, f"snnc_popart_{name}").argtypes = [pointer]
    runtime.snnc_popart_output_shape.argtypes = [pointer, ctypes.c_int, pointer]
    runtime.snnc_popart_gradient_input.argtypes = [pointer, ctypes.c_int, pointer]
    runtime.snnc_popart_gradient_output.argtypes = [pointer, ctypes.c_int]
    runtime.snnc_popart_run.argtypes = [pointer, pointer, pointer]
    return runtime


def _message(runtime: ctypes.CDLL) -> str:
    text: bytes = runtime.snnc_popart_error()
    return text.decode(errors="replace")


def _pointers(arrays: Sequence[Array]) -> ctypes.Array[ctypes.c_void_p]:
    return (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))
