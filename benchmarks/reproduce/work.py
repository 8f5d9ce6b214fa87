"""Run one :class:`Row` in a separate process: ``python -m snnc.benchmarks.reproduce.work WORK ARGUMENTS``; stdout ends with its result."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from snnc.benchmarks.cuda.predicted import predict_gpu_step
from snnc.benchmarks.matched import predict_matched
from snnc.benchmarks.measure import mapped_plan, measure
from snnc.benchmarks.nets import benchmark
from snnc.benchmarks.reproduce.emulated import emulate_small
from snnc.benchmarks.reproduce.energy import count_energy
from snnc.benchmarks.reproduce.figure import Row
from snnc.benchmarks.reproduce.neuron_models import predict_neuron_model
from snnc.benchmarks.reproduce.training import spikes_over_training, train_depth, train_neuron_model, train_population_code
from snnc.benchmarks.subprocesses import ProcessError, run_module
from snnc.compiler.errors import SnncError
from snnc.report.render import write
from snnc.report.subject import Subject


def map_tiles(name: str) -> dict[str, Any]:
    """Map a benchmark network; return its map as SVG and, for each layer, the number of its tiles and their mean and largest memory."""
    try:
        plan = mapped_plan(benchmark(name))
    except SnncError as error:
        return {"net": name, "error": error.text}
    subject = Subject(plan, {})
    memory = plan.tile_memory
    layers = []
    for number, population in enumerate(plan.populations):
        tiles = [int(tile) for tile in subject.places.layers[number].tiles]
        tile_bytes = [memory[tile] for tile in tiles]
        about = {"layer": population.label, "neurons": population.neurons, "tiles": len(tiles)}
        layers.append(about | {"mean_bytes": sum(tile_bytes) / len(tile_bytes), "largest_bytes": max(tile_bytes)})
    return {"net": name, "target": plan.target.name, "layers": layers, "svg": write(subject, "svg").decode()}


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
