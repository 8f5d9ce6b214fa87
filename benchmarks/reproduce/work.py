"""Run one row in a separate process: ``python -m snnc.benchmarks.reproduce.work WORK ARGUMENTS``; the last line of stdout is its result."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from snnc.benchmarks.matched import predict_matched
from snnc.benchmarks.measure import measure
from snnc.benchmarks.reproduce.emulated import emulate_small
from snnc.benchmarks.reproduce.energy import count_energy
from snnc.benchmarks.reproduce.figure import Row
from snnc.benchmarks.reproduce.gpu_steps import predict_gpu_step
from snnc.benchmarks.reproduce.neuron_models import predict_neuron_model
from snnc.benchmarks.reproduce.tile_map import map_tiles
from snnc.benchmarks.reproduce.training import spikes_over_training, train_depth, train_neuron_model, train_population_code
from snnc.benchmarks.subprocesses import ProcessError, run_module

WORK: Final[Mapping[str, Callable[..., dict[str, Any]]]] = {
    "plan": measure,
    "matched": predict_matched,
    "gpu step": predict_gpu_step,
    "neuron": predict_neuron_model,
    "emulate": emulate_small,
    "energy counts": count_energy,
    "tile map": map_tiles,
    "population code": train_population_code,
    "learning curve": train_neuron_model,
    "depth": train_depth,
    "spikes over training": spikes_over_training,
}
"""Functions that compute rows; each accepts the row's arguments by name and returns JSON types."""
TIMED: Final = ("population code",)
"""Kinds of work whose result contains a measured time; they run alone."""
_THREADS: Final = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "SNNC_THREADS"), "1")
"""Environment of rows that run in parallel: one thread each."""


def run_row(row: Row, seconds: float) -> dict[str, Any]:
    """Run `row` in a separate process, for at most `seconds`; return its result, or one with ``failed`` and the reason."""
    environment = os.environ | (_THREADS if row.work not in TIMED else {})
    try:
        return run_module("snnc.benchmarks.reproduce.work", [row.work, json.dumps(dict(row.arguments))], seconds, environment=environment)
    except ProcessError as error:
        return {"failed": str(error)}


if __name__ == "__main__":
    result = WORK[sys.argv[1]](**json.loads(sys.argv[2]))
    print(json.dumps(result | {"row_cpu_s": round(time.process_time(), 2)}, allow_nan=False))
