"""Engine that runs an emitted CUDA project, on a device or, as a check, on the CPU."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from snnc.backends.cuda.build import build_cuda, build_host_check
from snnc.backends.cuda.device import DEVICE, first_device
from snnc.backends.cuda.errors import CHECK_ON_HOST, DeviceArrayError
from snnc.backends.native.device_arrays import DeviceArray, device_array
from snnc.backends.native.sequence_engine import SequenceEngine
from snnc.backends.runtime.engine import Array, Initial
from snnc.compiler.ir.arrays.sizes import machine_memory


@dataclass(frozen=True, eq=False)
class Sent:
    """Inputs that were sent to the device before their run, and the shapes of the tensors at that time."""

    inputs: Mapping[str, Any]
    shapes: Mapping[str, tuple[int, ...]]


class CudaEngine(SequenceEngine):
    """Runs the shared library of a project, with any number of steps and samples. See :class:`snnc.backends.runtime.engine.Engine`.

    Inputs may already be in device memory: contiguous float32 arrays [steps, batch, *shape] of torch, CuPy or JAX (DLPack or
    ``__cuda_array_interface__``). They are not copied to the host.

    `library` was built by :func:`build_for_device`. `device_memory` is the number of bytes of device memory, and `device` the number of the
    device; both are None in a check on the CPU, where kernels use the memory of the host.
    """

    def __init__(
        self, library: Path, folder: Path, memory: int | None = None, device_memory: int | None = None, device: int | None = None
    ) -> None:
        super().__init__(library, folder, memory)
        self.device = device
        self._device_memory = device_memory
        self._offered: Mapping[str, Any] | None = None
        """Offered inputs, which are sent to the device while the next batch runs."""
        self._sending: tuple[Sent, list[Array]] | None = None
        """Inputs that are being sent while a batch runs, and the arrays that contain them."""
        self._sent: Sent | None = None
        """Inputs that were sent while the last batch ran."""
        self._stream: int | None = None
        """The caller's stream, once it has been set."""

    def _available_memory(self) -> tuple[int, str]:
        if self._device_memory is not None:
            return self._device_memory, "the device"
        return machine_memory(), "this machine"

    @property
    def accepts_next(self) -> bool:
        """See :class:`~snnc.backends.runtime.engine.PrefetchingEngine`; batches are not sent ahead if memory is bounded."""
        return self.memory is None

    def offer(self, inputs: Mapping[str, Any], target: Array | None = None) -> None:
        """See :class:`~snnc.backends.runtime.engine.PrefetchingEngine`; device arrays and events are read only when their batch runs."""
        self._offered = inputs

    def use_stream(self, stream: int) -> None:
        """Run in a stream of the caller from now on; calls return before the device has finished.

        `stream` is the address of a ``cudaStream_t`` of the program's device, 0 for the default stream; it must live until another one is
        set. Work that was started in the previous stream runs first. The host still waits for data that it reads. If a spike input contains
        values other than 0 and 1, the error is raised when the next input is set or when the host reads data, whichever comes first; the
        records of that sequence are NaN.
        """
        if stream != self._stream:
            self.session.set("stream", np.array([stream], np.uint64).view(np.int32))
            self._stream = stream

    def time_kernels(self) -> None:
        """See :class:`~snnc.backends.runtime.engine.TimingEngine`; timed kernels are launched one by one, so steps take longer."""
        self._setting("time_kernels", 1)

    def kernel_times(self) -> dict[str, Any] | None:
        profile = self.session.profile()
        if "kernel_us" not in profile:
            return None
        steps, batch = next(iter(self._shapes().values()))[:2]
        return {"device": profile["device"], "updates": profile["timed_steps"], "steps": steps, "batch": batch, "us": profile["kernel_us"]}

    def forward(self, inputs: Mapping[str, Array], initial: Initial) -> dict[str, Array]:
        outputs = super().forward(inputs, initial)
        self._end_sending()
        return outputs

    def train_batch(self, inputs: Mapping[str, Array], target: Array, learning_rate: float) -> float:
        loss = super().train_batch(inputs, target, learning_rate)
        self._end_sending()
        return loss

    def _end_sending(self) -> None:
        """Record that the data sent during the last batch has arrived."""
        sending, self._sending = self._sending, None
        self._sent = sending[0] if sending else None

    def _set_arrays(self, inputs: Mapping[str, Any]) -> None:
        """Set the inputs, unless they were sent ahead, and start sending the offered ones."""
        sent, self._sent = self._sent, None
        offered, self._offered = self._offered, None
        if sent is None or sent.inputs is not inputs or sent.shapes != self._shapes():
            super()._set_arrays(inputs)
        self._sending = None if offered is None else self._send(offered)

    def _send(self, inputs: Mapping[str, Any]) -> tuple[Sent, list[Array]] | None:
        """Pass the addresses of the next inputs to the program, which copies them while this batch runs; None: they are not sent ahead."""
        shapes = self._shapes()
        batches = {name: inputs[name] for name in shapes}
        if any(not isinstance(a, np.ndarray) or a.size != math.prod(shapes[name]) for name, a in batches.items()):
            return None
        steps, batch = next(iter(shapes.values()))[:2]
        size = sum(4 * a.size for a in batches.values())
        if steps * batch * int(self.description["bytes_per_step"]) + size > self._available_memory()[0]:
            return None
        arrays = [np.ascontiguousarray(a, dtype=np.float32) for a in batches.values()]
        for name, array in zip(batches, arrays, strict=True):
            self.session.set_from(f"{name}_next", array.ctypes.data, array.size)
        return Sent(inputs, shapes), arrays

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        return {info["tensor"]: self.session.tensors[info["tensor"]].shape for info in self.description["inputs"]}

    def _set_array(self, name: str, values: Any, shape: Sequence[int]) -> None:
        array = device_array(values, self._stream or 0)
        if array is None:
            super()._set_array(name, values, shape)
            return
        _check_device_array(name, array, (*self.session.tensors[name].shape[:2], *shape))
        self.session.set_from(name, array.address, math.prod(array.shape))


def _check_device_array(name: str, array: DeviceArray, shape: tuple[int, ...]) -> None:
    if array.kind != "float32" or array.shape != shape:
        raise DeviceArrayError(
            f"the input {name} accepts float32 of shape {list(shape)}; the device array contains {array.kind} of shape "
            f"{list(array.shape)}. Convert it on the device."
        )
    if not array.contiguous:
        raise DeviceArrayError(f"the device array for input {name} is not contiguous. Make it contiguous first.")


def build_for_device(folder: Path, number: int | None = None) -> Path:
    """Return the library of the project in `folder` for device `number` of this machine, or for a check on the CPU.

    Raises a GpuMissingError if this machine has no device and no check on the CPU was requested, a ToolMissingError if it has no compiler,
    and a BuildError if the project does not compile.
    """
    if os.environ.get(CHECK_ON_HOST):
        return build_host_check(folder)
    with _device_number(number):
        return build_cuda(folder, first_device().architecture)


def load_engine(library: Path, folder: Path, memory: int | None = None, number: int | None = None) -> CudaEngine:
    """Load a library built by :func:`build_for_device` on the same device; `memory` is the maximum number of bytes of a training step."""
    if os.environ.get(CHECK_ON_HOST):
        return CudaEngine(library, Path(folder), memory=memory)
    with _device_number(number):
        device = first_device()
        os.environ[DEVICE] = str(device.number)
        return CudaEngine(library, Path(folder), memory=memory, device_memory=device.memory, device=device.number)


@contextmanager
def _device_number(number: int | None) -> Iterator[None]:
    """Set the environment variable of the device number to `number`, if it is given, while the block runs; then restore it."""
    before = os.environ.get(DEVICE)
    if number is not None:
        os.environ[DEVICE] = str(number)
    try:
        yield
    finally:
        os.environ.pop(DEVICE, None)
        if before is not None:
            os.environ[DEVICE] = before
