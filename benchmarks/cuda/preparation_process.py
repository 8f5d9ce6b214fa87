"""Preparations of a workload before anything is timed, each in a separate process.

``python -m snnc.benchmarks.cuda.preparation_process WHAT FOLDER MODE``

The process reads the workload as JSON from standard input, writes its answer as a line of JSON to standard output, and arrays to archives
in the folder.

- ``problem`` writes the timed problem; the answer is ``{}``.
- ``numbers`` writes the checked problem with its expected loss, gradients and weights; the answer is the
  :class:`~snnc.benchmarks.cpu.oracle.ReferenceStep` of the timed problem.
- ``project`` builds snnc's programs for a mode such as ``window`` (timed and checked problem) in the cache; the answer is ``{}``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import numpy as np

from snnc.benchmarks.conditions import Conditions
from snnc.benchmarks.cpu.oracle import BATCH, STEPS, Check, Expected, ReferenceStep, make_check, reference_step
from snnc.benchmarks.cpu.problem import make_problem, read_problem, write_problem
from snnc.benchmarks.cpu.suite import CHECKED_PROBLEM, TIMED_PROBLEM, Files
from snnc.benchmarks.cpu.workloads import Workload
from snnc.benchmarks.subprocesses import run_module
from snnc.data.arrays import read_arrays

PROBLEM: Final = "problem"
EXPECTED: Final = "numbers"
PROJECT: Final = "project"
SECONDS: Final = 600.0
"""Time limit of a preparation, in seconds."""
_KINDS: Final = ("exact", "window")
"""Gradients for which there are expected numbers: exact, and windowed."""


def prepare(what: str, folder: Path, workload: Workload, environment: Mapping[str, str], mode: str = "") -> dict[str, Any]:
    """Run one preparation in a separate process and return its answer; raise ProcessError if it fails."""
    arguments, stdin = [what, str(folder), mode], json.dumps(workload.to_data())
    return run_module("snnc.benchmarks.cuda.preparation_process", arguments, SECONDS, stdin=stdin, environment=environment)


def read_files(folder: Path, answer: Mapping[str, Any]) -> Files:
    """Return the files that the preparations ``problem`` and ``numbers`` wrote to a folder; `answer` is the answer of ``numbers``."""
    expected = [_read_expected(folder / f"{kind}.npz") for kind in _KINDS]
    check = Check(read_problem(folder / CHECKED_PROBLEM), *expected)
    first = ReferenceStep(answer["loss"], answer["activity"], Conditions(**answer["conditions"]))
    return Files(folder, check, first)


def _write_expected(path: Path, expected: Expected) -> None:
    arrays = {f"g:{name}": value for name, value in expected.gradients.items()}
    arrays |= {f"w:{name}": value for name, value in expected.weights.items()}
    np.savez(path, loss=np.array(expected.loss), **arrays)  # type: ignore[arg-type]


def _read_expected(path: Path) -> Expected:
    arrays = read_arrays(path)
    gradients, weights = ({name[2:]: value for name, value in arrays.items() if name.startswith(kind)} for kind in ("g:", "w:"))
    return Expected(float(arrays["loss"]), gradients, weights)


def _write_expected_results(workload: Workload, folder: Path) -> dict[str, Any]:
    check = make_check(workload)
    write_problem(check.problem, folder / CHECKED_PROBLEM)
    for kind in _KINDS:
        _write_expected(folder / f"{kind}.npz", getattr(check, kind))
    return asdict(reference_step(make_problem(workload)))


def prepare_here(what: str, folder: Path, mode: str, workload: Workload) -> dict[str, Any]:
    """Run one preparation in this process and return its answer."""
    if what == EXPECTED:
        return _write_expected_results(workload, folder)
    if what == PROBLEM:
        write_problem(make_problem(workload), folder / TIMED_PROBLEM)
    else:
        from snnc.benchmarks.cpu.engines.with_snnc import session

        for one in (workload, workload.checked(STEPS, BATCH)):
            session(one, mode, "cuda")
    return {}


if __name__ == "__main__":
    what, folder, mode = sys.argv[1:]
    print(json.dumps(prepare_here(what, Path(folder), mode, Workload.from_data(json.load(sys.stdin)))))
