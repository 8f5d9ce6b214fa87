"""Programs that run kernels of the CUDA runtime on the CPU, without a project."""

import subprocess
from pathlib import Path

from snnc.backends.cuda import build
from snnc.backends.toolchain.compilers import common_flags, compiler, compiler_version, machine_id
from snnc.backends.toolchain.objects import compiled, headers_of, source_key

RUNTIME = Path(__file__).parents[2] / "templates" / "cuda" / "runtime"
LEVEL = build.HOST_FLAGS
"""Flags of the check itself, which computes much: optimised as for users."""


def built_check(to, sources, flags=()):
    """Compile a program from C++ or CUDA sources and link it with the fibers and with device memory; return its path, `to`."""
    command = [*compiler(), "-std=c++17", *LEVEL, *flags, f"-I{RUNTIME}", "-x", "c++", *map(str, sources)]
    subprocess.run([*command, "-x", "none", *_host_objects(), "-o", str(to)], check=True, capture_output=True, text=True)
    return to


def _host_objects():
    """Return the objects that every such program needs besides its own. The cache has them once; checks of projects use the same."""
    command, headers = compiler(), headers_of(RUNTIME)
    base = [*command, *common_flags(command), *build.HOST_FLAGS]
    for name, level in ((build.ON_HOST, [build.ON_HOST_LEVEL]), ("memory.cpp", [])):
        key = source_key(RUNTIME / name, headers, [*base, compiler_version(command), machine_id(), *level])
        yield str(compiled(RUNTIME / name, key, [*base, *level]))
