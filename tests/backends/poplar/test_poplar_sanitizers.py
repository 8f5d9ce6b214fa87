"""Emitted programs with segments and with replicas, under the compiler's sanitizers."""

import subprocess
import sys

import numpy as np
import pytest
from poplar_projects import BATCH, STEPS, machine, project, spiking
from sanitizers import SANITIZERS, preloading

from snnc.backends.poplar.emit import emit_poplar
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import SGD
from snnc.compiler.lowering.lower import lower
from snnc.compiler.tiles import make_plan
from snnc.compiler.tiles.replan import as_planned


def segments(folder, way, length):
    """The recurrent case in segments that come from the host."""
    case = project("recurrent")
    placer = as_planned(case.plan)
    plan = make_plan(case.program, case.plan.target, steps=STEPS, batch=BATCH, placer=placer, recompute=length, streaming=way)
    return emit_poplar(case.program, plan, folder / way)


def half(folder):
    """A past of half numbers, of odd numbers of neurons, in rows of streaming memory."""
    graph = spiking(np.random.default_rng(3), hidden=37)
    program = lower(graph, loss=parse_loss("ce_mean_membrane"), loss_output="y", optimizer=SGD(1e-2), steps=STEPS, half=("history",))
    plan = make_plan(program, machine(2), steps=STEPS, batch=BATCH, effort=0, recompute=4, streaming="history")
    return emit_poplar(program, plan, folder / "half")


@pytest.mark.wide
@pytest.mark.parametrize("library", SANITIZERS)
def test_emitted_programs_have_no_race_and_touch_no_memory_that_is_not_theirs(tmp_path, root, library):
    """Built and run in a process of its own, because the sanitizer's library has to be loaded first."""
    surroundings = preloading(library)
    folders = [segments(tmp_path, "inputs", 5), segments(tmp_path, "history", 3), segments(tmp_path, "boundaries", 7), half(tmp_path)]
    folders += [project(name).folder for name in ("replicas", "exact several inputs", "learnable")]
    flags = f"{SANITIZERS[library]} -fno-sanitize-recover=all -g"
    options = {
        "SNNC_LIBRARY_FLAGS": f"-O1 {flags}", "SNNC_CODELET_EXTRA_FLAGS": flags, "SNNC_THREADS": "3", "SNNC_PARALLEL_MICROSECONDS": "0",
    }  # fmt: skip
    found = subprocess.run(
        [sys.executable, str(root / "tests" / "backends" / "poplar" / "poplar_sanitized.py"), flags, *map(str, folders)],
        env={**surroundings, **options}, cwd=tmp_path, capture_output=True, text=True, timeout=1800, check=False,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr[-4000:]
    assert "trained 7 networks" in found.stdout
