"""Emitted programs with segments, host streams beside computing, and replicas, under the compiler's sanitizers."""

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from poplar_projects import BATCH, STEPS, overlapped, project

from snnc.backends.poplar.emit import emit_poplar
from snnc.compiler.mapping import make_plan
from snnc.compiler.mapping.as_planned import as_planned
from snnc.compiler.mapping.host_overlap import Wanted, plan_overlap
from snnc.compiler.target import Host

SANITIZERS = {"libasan.so": "-fsanitize=address,undefined", "libtsan.so": "-fsanitize=thread"}


def segments(folder, way, length, rate):
    """The recurrent case in segments that come from the host while the one before runs."""
    case = project("recurrent")

    def planned(machine):
        return make_plan(case.program, machine, steps=STEPS, batch=BATCH, placer=as_planned(case.plan), recompute=length, streaming=way)

    plan = plan_overlap(planned, case.program, replace(case.plan.target, tiles_per_chip=6, host=Host(rate)), Wanted("on", 2))
    return emit_poplar(case.program, plan, folder / way)


@pytest.mark.wide
@pytest.mark.parametrize("library", SANITIZERS)
def test_emitted_programs_have_no_race_and_touch_no_memory_that_is_not_theirs(tmp_path, root, library):
    """Built and run in a process of its own, because the sanitizer's library has to be loaded first."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("the run-time library of the sanitizer is found through g++")
    place = subprocess.run([compiler, f"-print-file-name={library}"], capture_output=True, text=True, check=True).stdout.strip()
    if not Path(place).exists():
        pytest.skip(f"{library} is not installed")
    folders = [segments(tmp_path, "inputs", 5, 8e9), segments(tmp_path, "history", 3, 2e7), segments(tmp_path, "boundaries", 7, 2e7)]
    folders += [overlapped("replicas", 1, 1e8).folder, overlapped("exact several inputs", 3, 1e8).folder, project("learnable").folder]
    flags = f"{SANITIZERS[library]} -fno-sanitize-recover=all -g"
    options = {
        "SNNC_LIBRARY_FLAGS": f"-O1 {flags}", "SNNC_CODELET_EXTRA_FLAGS": flags, "SNNC_THREADS": "3", "SNNC_PARALLEL_MICROSECONDS": "0",
        "ASAN_OPTIONS": "detect_leaks=0", "TSAN_OPTIONS": "halt_on_error=1", "OPENBLAS_NUM_THREADS": "1", "LD_PRELOAD": place,
    }  # fmt: skip
    found = subprocess.run(
        [sys.executable, str(root / "tests" / "backends" / "poplar_sanitized.py"), flags, *map(str, folders)],
        env={**os.environ, **options}, cwd=tmp_path, capture_output=True, text=True, timeout=1800, check=False,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr[-4000:]
    assert "trained 6 networks" in found.stdout
