"""An emitted CUDA project as an engine, on a device or in a check on the processor."""

from __future__ import annotations

import os
from pathlib import Path

from snnc.backends.cpu.engine import CpuEngine
from snnc.backends.cuda.build import build_cuda, build_host_check
from snnc.backends.cuda.device import capability
from snnc.backends.cuda.errors import CHECK_ON_HOST


class CudaEngine(CpuEngine):
    """Runs the shared library of a project; any number of steps and samples. See :class:`snnc.backends.engine.Engine`.

    Parameters
    ----------
    library, folder
        What :func:`~snnc.backends.cuda.build.build_cuda` or :func:`~snnc.backends.cuda.build.build_host_check` made, and the project.
    team_blocks
        Blocks that share the samples of a team; None leaves the choice to the program.
    tile
        Samples that one read of a weight serves: 1 or 8; None leaves the choice to the program.
    """

    def __init__(self, library: Path, folder: Path, team_blocks: int | None = None, tile: int | None = None) -> None:
        super().__init__(library, folder)
        for name, value in (("team_blocks", team_blocks), ("tile", tile)):
            if value is not None:
                self._setting(name, value)


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
    major, minor = capability()
    return CudaEngine(build_cuda(folder, f"sm_{major}{minor}"), Path(folder))
