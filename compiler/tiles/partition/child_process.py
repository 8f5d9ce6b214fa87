"""Native partitioners (Mt-KaHyPar, METIS) in a child process: if the library aborts, only the child process ends."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from snnc.compiler.tiles.errors import PartitionerCrashError
from snnc.compiler.tiles.partition.hypergraph import Ints

PROGRAM: Final = Path(__file__).with_name("native.py")


def run_partitioner(library: Literal["mtkahypar", "metis"], **arguments: Any) -> Ints:
    """Run a partitioner in a child process, and return the part of every vertex of the hypergraph or graph.

    `arguments` are the arrays and numbers that :mod:`~snnc.compiler.tiles.partition.native` passes to this library.
    If the library ends its process, or its output is not a partition, a PartitionerCrashError is raised.
    """
    arrays, vertices = io.BytesIO(), len(arguments["work"])
    np.savez(arrays, **arguments)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-P", str(PROGRAM), library]
    try:
        process = subprocess.run(command, input=arrays.getvalue(), capture_output=True, env=environment, check=False)
    except OSError as error:
        raise _crash(library, f"cannot be started ({error.strerror or error})") from None
    if process.returncode:
        lines = process.stderr.decode(errors="replace").strip().splitlines()
        raise _crash(library, f"ended with {_status(process.returncode)}" + (f" ({lines[-1][:200]})" if lines else ""))
    try:
        part: Ints = np.load(io.BytesIO(process.stdout), allow_pickle=False)
    except (ValueError, EOFError, OSError):
        raise _crash(library, "returned no output") from None
    if part.shape != (vertices,) or (vertices and not 0 <= part.min() <= part.max() < int(arguments["parts"])):
        raise _crash(library, f"returned {part.size:,} parts for {vertices:,} vertices, or numbers of parts that do not exist")
    return part


def _status(code: int) -> str:
    if code > 0:
        return f"status {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def _crash(library: str, what: str) -> PartitionerCrashError:
    hint = "" if Path("/sys/devices/system/cpu").exists() or library != "mtkahypar" else "; it needs /sys, which is not mounted here"
    package = {"metis": "pymetis"}.get(library, library)
    return PartitionerCrashError(f"the partitioner {library!r} {what}{hint}. Without it: pip uninstall {package}.")
