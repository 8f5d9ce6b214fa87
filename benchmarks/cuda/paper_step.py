"""Measure a training step of a network of arXiv 2311.04386 on the first device: ``python -m snnc.benchmarks.cuda.paper_step NAME``.

The loss and gradients of a smaller step are compared with the NumPy reference first. The last line of stdout has the results as JSON. If
``SNNC_CUDA_ON_HOST`` is set, the CPU makes this comparison, and nothing is timed.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from snnc.backends.cuda.emit import emit_cuda
from snnc.backends.cuda.engine import CudaEngine, build_for_device, load_engine
from snnc.backends.reference.engine import ReferenceEngine
from snnc.benchmarks.benchmark import Benchmark
from snnc.benchmarks.conditions import Conditions
from snnc.benchmarks.cuda.command import available_device
from snnc.benchmarks.matched import conditions_of, drawn_inputs, drawn_labels, weight_labels
from snnc.benchmarks.nets import benchmark
from snnc.compiler.files.temporary import temporary_folder
from snnc.compiler.ir.graph import Array
from snnc.compiler.ir.step_program import StepProgram
from snnc.driver.activity import measure_activity

CHECKED: Final = (6, 2)
"""Numbers of time steps and samples of the compared step."""
EQUAL: Final = 1e-3
"""Maximum accepted relative difference of the loss, and of each gradient (norm over norm)."""
SEEDS: Final = 5
"""Number of problems that are compared on a GPU; one must agree. If rounding decides whether a neuron reaches its threshold, it may spike
in one program only."""
UNTIMED, TIMED = 3, 20
"""Number of untimed steps at the start, and number of timed steps."""


def step_of(case: Benchmark) -> dict[str, Any]:
    """Compare and time the training step of a benchmark.

    Return ``device``, ``ms`` (median), ``ms_p10``, ``ms_p90``, ``steps_timed`` and ``conditions``; only ``checked`` if the CPU replaces the
    GPU. Raise ArithmeticError if the loss or a gradient differs from the reference in every compared problem.
    """
    kind, gpu = available_device()
    program = case.program()
    with temporary_folder("snnc-bench-") as folder:
        project = emit_cuda(program, Path(folder) / "project", case.steps, case.batch)
        engine = load_engine(build_for_device(project), project)
        wrong = [difference(case, program, engine, seed) for seed in range(SEEDS) if seed == 0 or kind == "cuda"]
        if all(wrong):
            raise ArithmeticError(f"its numbers differ: {wrong[0]}")
        result = {"checked": f"{CHECKED[0]} steps of {CHECKED[1]} samples equal the reference"}
        if kind == "cuda":
            result |= {"device": gpu.name} | timed(case, program, engine)
        engine.close()
    return result


def difference(case: Benchmark, program: StepProgram, engine: CudaEngine, seed: int) -> str:
    """Return the difference from the reference in one small step as text, "" if they agree.

    The weights are restored, because even with the learning rate 0 a gradient that is not finite changes them.
    """
    inputs = drawn_inputs(case, program, *CHECKED, seed)
    labels = np.random.default_rng(seed).integers(0, program.outputs[0].shape[0], CHECKED[1])
    weights = engine.get_parameters()
    reference = ReferenceEngine(program)
    reference.set_parameters(weights)
    loss, expected = engine.train_batch(inputs, labels, 0.0), reference.train_batch(inputs, labels, 0.0)
    gradients = engine.gradients()
    engine.set_parameters(weights)
    if not abs(loss - expected) <= EQUAL * abs(expected):
        return f"the loss is {loss:.6g}, not {expected:.6g}"
    for name, gradient in reference.gradients().items():
        error = float(np.linalg.norm(gradients[name] - gradient)) / max(float(np.linalg.norm(gradient)), 1e-12)
        if not error <= EQUAL:
            return f"the gradient of {program.parameters[name].label} differs by {error:.2g} of its norm"
    return ""


def timed(case: Benchmark, program: StepProgram, engine: CudaEngine) -> dict[str, Any]:
    """Return milliseconds and conditions of training steps with the batch on the device.

    The learning rate is 0, so all steps have equal activity.
    """
    inputs, labels = drawn_inputs(case, program), drawn_labels(case, program)
    placed, weights = on_device(inputs), engine.get_parameters()
    conditions = asdict(step_conditions(program, weights, inputs, labels))
    for _ in range(UNTIMED):
        engine.train_batch(placed, labels, 0.0)
    engine.set_parameters(weights)
    milliseconds = []
    for _ in range(TIMED):
        # A step ends when its loss has been read back, after the update.
        start = time.perf_counter()
        engine.train_batch(placed, labels, 0.0)
        milliseconds.append(1e3 * (time.perf_counter() - start))
    low, high = np.percentile(milliseconds, (10, 90))
    times = {"ms": statistics.median(milliseconds), "ms_p10": float(low), "ms_p90": float(high)}
    return times | {"steps_timed": TIMED, "conditions": conditions}


def step_conditions(program: StepProgram, weights: Mapping[str, Array], inputs: Mapping[str, Array], labels: Array) -> Conditions:
    """Return the hashes of an engine's weights and of its data, and the activity that the reference counts with them."""
    parameters = {name: replace(p, value=weights.get(name, p.value)) for name, p in program.parameters.items()}
    trained = replace(program, parameters=parameters)
    return conditions_of(trained, weight_labels(trained), inputs, labels, measure_activity(trained, inputs, "the measured batch"))


def on_device(inputs: Mapping[str, Array]) -> dict[str, Any]:
    """Return the inputs in device memory."""
    import torch

    return {name: torch.from_numpy(array).cuda() for name, array in inputs.items()}


if __name__ == "__main__":
    print(json.dumps(step_of(benchmark(sys.argv[1])), allow_nan=False))
