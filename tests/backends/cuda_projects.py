"""CUDA projects for tests: emitted, built for the processor (each CUDA thread a fiber), run beside the reference."""

import tempfile
from contextlib import contextmanager
from pathlib import Path

from snnc.backends.cuda.build import build_host_check
from snnc.backends.cuda.emit import emit_cuda
from snnc.backends.cuda.engine import CudaEngine

QUICK = ("-O0",)
"""Flags for networks that are small and many."""


@contextmanager
def opened(program, team_blocks=None, tile=None, flags=QUICK):
    """Emit `program`, build it for the processor and open it."""
    with tempfile.TemporaryDirectory(prefix="snnc-cuda-") as above:
        folder = emit_cuda(program, Path(above) / "project")
        engine = CudaEngine(build_host_check(folder, flags), folder, team_blocks, tile)
        yield engine
        engine.close()
