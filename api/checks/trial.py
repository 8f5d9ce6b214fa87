"""Run one batch on the target and on the reference backend, and compare the outputs."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from snnc.backends.reference.engine import ReferenceEngine
from snnc.compiler.ir.arrays.randomness import Stream
from snnc.compiler.ir.graph import Array
from snnc.compiler.lowering.statistics import visible
from snnc.driver.folder import read_project
from snnc.driver.measuring import sequences
from snnc.driver.stages import open_engine

STEPS: Final = 16
"""Number of steps of random spikes if neither the program nor the model fixes it."""
RATE: Final = 0.1
"""Probability of a random spike in an element of an input in a step."""


@dataclass(frozen=True)
class TrialRun:
    """Result of one batch: number of outputs, largest difference from the reference, run time, and the engine's counters."""

    outputs: int
    largest_difference: float
    seconds: float
    counters: dict[str, int]


def run_once(folder: Path, data: Path | None) -> TrialRun:
    """Run one batch of `data`, or of random spikes, on the project's target and on the reference backend."""
    compiled = read_project(folder)
    program = visible(compiled.program)
    engine = open_engine(compiled, folder)
    batch, steps = engine.batch or compiled.options.batch or 1, engine.steps or program.steps or STEPS
    rng = Stream(compiled.options.seed)
    if data is None:
        drawn = {i.id: rng.random((1 if i.static else steps, batch, *i.shape)) < RATE for i in program.inputs}
        inputs = {id_: np.repeat(array, steps // len(array), axis=0).astype(np.float32) for id_, array in drawn.items()}
    else:
        arrays = sequences(compiled.graph, program, data)
        inputs = {id_: _fitted(array, steps, batch) for id_, array in arrays.items()}
    try:
        start = time.monotonic()
        outputs = engine.forward(inputs, {})
        seconds = time.monotonic() - start
        counters = engine.counters()
    finally:
        engine.close()
    expected = ReferenceEngine(program).forward(inputs, {})
    largest = max((float(np.abs(outputs[k] - expected[k]).max()) for k in expected if expected[k].size), default=0.0)
    return TrialRun(len(expected), largest, seconds, counters)


def _fitted(array: Array, steps: int, batch: int) -> Array:
    """Repeat or cut the samples of [T, B, …] to `batch`; pad with zeros or cut the steps to `steps`."""
    samples = np.resize(array.swapaxes(0, 1), (batch, len(array), *array.shape[2:]))
    fitted = np.zeros((steps, *samples.shape[:1], *samples.shape[2:]), np.float32)
    fitted[: len(array)] = samples.swapaxes(0, 1)[:steps]
    return fitted
