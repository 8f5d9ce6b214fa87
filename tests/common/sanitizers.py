"""Sanitizers of the compiler, for programs that Python loads: their library must be loaded first, in a separate process."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SANITIZERS = {"libasan.so": "-fsanitize=address,undefined", "libtsan.so": "-fsanitize=thread"}
"""Run-time library and flag of the compiler."""


def preloading(library):
    """Return the environment of a process that loads the library first; skip the test if the library is not installed."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("the run-time library of the sanitizer is found through g++")
    place = subprocess.run([compiler, f"-print-file-name={library}"], capture_output=True, text=True, check=True).stdout.strip()
    if not Path(place).exists():
        pytest.skip(f"{library} is not installed")
    options = {"ASAN_OPTIONS": "detect_leaks=0", "TSAN_OPTIONS": "halt_on_error=1", "OPENBLAS_NUM_THREADS": "1", "LD_PRELOAD": place}
    return {**os.environ, **options}
