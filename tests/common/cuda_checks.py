"""Programs that run kernels of the CUDA runtime on the CPU, without a project."""

from pathlib import Path

RUNTIME = Path(__file__).parents[2] / "templates" / "cuda" / "runtime"
HOST_SOURCES = tuple(str(RUNTIME / name) for name in ("cuda_on_host.cpp", "memory.cpp"))
"""Sources that every such program needs besides its own: the fibers, and device memory."""
