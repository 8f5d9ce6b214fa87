"""An emitted CUDA project as an engine, on a device or in a check on the processor."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from snnc.backends.cuda.build import build_cuda, build_host_check
from snnc.backends.cuda.device import first_device
from snnc.backends.cuda.errors import CHECK_ON_HOST, DeviceArrayError
from snnc.backends.sized_engine import SizedEngine


class CudaEngine(SizedEngine):
    """Runs the shared library of a project; any number of steps and samples. See :class:`snnc.backends.engine.Engine`.

    Inputs may lie in device memory already: arrays of torch, CuPy or JAX that have a ``__cuda_array_interface__``, float32,
    [steps, batch, *shape], are read where they are.

    Parameters
    ----------
    library, folder
        What :func:`~snnc.backends.cuda.build.build_cuda` or :func:`~snnc.backends.cuda.build.build_host_check` made, and the project.
    team_blocks
        Blocks that share the samples of a team; None leaves the choice to the program.
    tile
        Samples that one read of a weight serves: 1 or 8; None leaves the choice to the program.
    memory
        Bytes of the device's memory; None: it is the host's.
    """

    def __init__(
        self, library: Path, folder: Path, team_blocks: int | None = None, tile: int | None = None, memory: int | None = None
    ) -> None:
        super().__init__(library, folder)
        self._memory = memory
        for name, value in (("team_blocks", team_blocks), ("tile", tile)):
            if value is not None:
                self._setting(name, value)

    def _memory_there(self) -> tuple[int, str]:
        if self._memory is not None:
            return self._memory, "the device"
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), "this machine"

    def _set_arrays(self, inputs: Mapping[str, Any]) -> None:
        """Set all inputs, from host memory or from the device's."""
        for info in self.description["inputs"]:
            name = info["tensor"]
            interface = getattr(inputs[name], "__cuda_array_interface__", None)
            if interface is None:
                self.session.set(name, inputs[name])
                continue
            shape = (*self.session.tensors[name].shape[:2], *info["shape"])
            _check_device_array(name, interface, shape)
            self.session.set_from(name, interface["data"][0], math.prod(shape))


def _check_device_array(name: str, interface: Mapping[str, Any], shape: tuple[int, ...]) -> None:
    """See https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html."""
    steps = np.cumprod([4, *reversed(shape)])[:-1][::-1]
    given = interface.get("strides")
    if interface["typestr"] != "<f4" or tuple(interface["shape"]) != shape:
        raise DeviceArrayError(
            f"the input {name} takes float32 of shape {list(shape)}; the device array holds {interface['typestr']} of shape "
            f"{list(interface['shape'])}. Convert it on the device."
        )
    if given is not None and tuple(given) != tuple(steps):
        raise DeviceArrayError(
            f"the device array for input {name} is not contiguous: its strides are {list(given)} bytes. Make it so first."
        )


def open_engine(folder: Path) -> CudaEngine:
    """Build the project in `folder` if needed and load it.

    Raises
    ------
    GpuMissingError
        There is no device, and no check on the processor was asked for.
    ToolMissingError, BuildError
        There is no compiler, or it refuses the project.
    """
    if os.environ.get(CHECK_ON_HOST):
        return CudaEngine(build_host_check(folder), Path(folder))
    device = first_device()
    return CudaEngine(build_cuda(folder, device.architecture), Path(folder), memory=device.memory)
