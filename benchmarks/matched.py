"""Predict a training step on IPUs with the weights, data and activity of a GPU measurement.

``python -m snnc.benchmarks.matched NAME [TARGET]`` prints the prediction as JSON; :mod:`snnc.benchmarks.cuda.paper` runs it as a process.

Networks are those of ``snnc bench --suite cuda`` (``w1-5``, ``conv-3``) and of ``--suite paper`` (``logged-h2-a5``). Both suites draw
weights, inputs and labels from a seed. This module draws the same, counts the spikes in the reference, and plans for these counts. No
spike is dropped, because the GPU's program drops none either.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import numpy as np

from snnc.benchmarks.benchmark import Benchmark, spiking_buffers
from snnc.benchmarks.conditions import Conditions, digest
from snnc.benchmarks.cpu.network import labelled, labels, network, training
from snnc.benchmarks.cpu.problem import make_problem
from snnc.benchmarks.cpu.workloads import Workload
from snnc.benchmarks.cuda.workloads import CUDA_WORKLOADS
from snnc.benchmarks.nets import SEED, benchmark
from snnc.benchmarks.published import moving_strokes
from snnc.compiler.errors import SnncError
from snnc.compiler.ir.graph import Array
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.machines import load_target
from snnc.compiler.tiles.activity import Activity
from snnc.compiler.tiles.planning.placing import map_graph
from snnc.driver.activity import measure_activity
from snnc.driver.estimating import Estimate
from snnc.driver.lowering import Lowered, lower_graph
from snnc.options.compile_options import CompileOptions, options

LEARNED: Final = (".weight", ".bias")
"""Suffixes of the labels of weights and biases."""
STEP: Final = ("ipus", "step_cycles", "bound_cycles", "step_ms", "peak_tile_bytes", "tile_bytes")
"""Keys of an estimate that are copied into a prediction."""


@dataclass(frozen=True, eq=False)
class MatchedProblem:
    """A lowered network with the weights, inputs [T, B, ...] and labels [B] of a measurement.

    ``program`` is that of ``lowered``, but with these weights. ``weight_names`` maps labels of parameters to the names under which they
    are hashed; parameters of neurons have none.
    """

    lowered: Lowered
    options: CompileOptions
    program: StepProgram
    inputs: Mapping[str, Array]
    labels: Array
    weight_names: Mapping[str, str]
    chips: int


def conditions_of(
    program: StepProgram, weight_names: Mapping[str, str], inputs: Mapping[str, Array], labels: Array, counted: Activity
) -> Conditions:
    """Return the hashes of the weights of `program` and of the data, and the activity `counted` with them.

    ``weight_names`` maps labels of parameters to the names under which they are hashed; other parameters are not hashed.
    """
    weights = {weight_names[p.label]: p.value for p in program.parameters.values() if p.label in weight_names}
    (x,) = inputs.values()
    rates = {name: counted.mean[buffer] for name, buffer in spiking_buffers(program)}
    return Conditions(digest(weights), digest({"x": x, "y": labels}), rates)


def matched_problem(name: str, target: str | None = None) -> MatchedProblem:
    """Return the problem of a network for `target`; None: the machine of the benchmark, or a GC200 for a network of the suite cuda."""
    workload = next((w for w in CUDA_WORKLOADS if w.label == name), None)
    return _of_benchmark(benchmark(name), target) if workload is None else of_workload(workload, target or "gc200")


def of_workload(workload: Workload, target: str) -> MatchedProblem:
    """Return the problem on which every engine is timed in the suites ``cpu`` and ``cuda``, lowered for `target`."""
    problem = make_problem(workload)
    chosen = options(target, **training(workload))
    lowered = lower_graph(network(workload).graph(), chosen)
    values = labelled(workload, problem.weights)
    parameters = {key: replace(p, value=values.get(p.label, p.value)) for key, p in lowered.program.parameters.items()}
    program = replace(lowered.program, parameters=parameters)
    names = {label: name for name, label in labels(workload).items()}
    return MatchedProblem(lowered, chosen, program, {program.inputs[0].id: problem.x}, problem.y, names, chips=1)


def _of_benchmark(case: Benchmark, target: str | None) -> MatchedProblem:
    chosen = case.options(target or case.target)
    lowered = lower_graph(case.build().graph(), chosen)
    program = lowered.program
    drawn = drawn_inputs(case, program), drawn_labels(case, program)
    return MatchedProblem(lowered, chosen, program, *drawn, weight_labels(program), case.chips)


def drawn_inputs(case: Benchmark, program: StepProgram, steps: int = 0, batch: int = 0, seed: int = SEED) -> dict[str, Array]:
    """Return random inputs [T, B, ...]: moving pen strokes for logged runs, else independent spikes at the benchmark's input activity.

    If `steps` or `batch` is 0, the benchmark's own number is used.
    """
    (info,) = program.inputs
    steps, batch = steps or case.steps, batch or case.batch
    if case.suite == "logged":
        return {info.id: moving_strokes(steps, batch, seed).astype(np.float32)}
    rng = np.random.default_rng(seed)
    return {info.id: (rng.random((steps, batch, *info.shape), np.float32) < case.activity[info.label]).astype(np.float32)}


def drawn_labels(case: Benchmark, program: StepProgram) -> Array:
    """Return random classes [B]."""
    classes: Array = np.random.default_rng(SEED).integers(0, program.outputs[0].shape[0], case.batch)
    return classes


def weight_labels(program: StepProgram) -> dict[str, str]:
    """Map the label of each weight and bias to itself: in the paper's networks, weights are hashed under their own labels."""
    return {p.label: p.label for p in program.parameters.values() if p.label.endswith(LEARNED)}


def predict_matched(name: str, target: str | None = None) -> dict[str, Any]:
    """Map the problem of `name`; return the predicted step and its conditions, or an ``error``."""
    problem = matched_problem(name, target)
    chosen = problem.options
    machine = load_target(chosen.target)
    counted = measure_activity(problem.program, problem.inputs, f"counted on the data of {name}")
    row = {
        "net": name,
        "target": machine.name,
        "batch": chosen.batch,
        "steps": chosen.steps,
        "activity": counted.source,
        "fits": False,
        "conditions": asdict(conditions_of(problem.program, problem.weight_names, problem.inputs, problem.labels, counted)),
    }
    try:
        wanted = chosen.for_backend().for_plan()
        mapped = map_graph(problem.lowered.ready, problem.program, wanted, counted, machine=machine, strategy="snnc", chips=problem.chips)
    except SnncError as error:
        return row | {"error": error.text, "code": error.code}
    data = Estimate(mapped.plan, 0.0).to_data()
    memory = {kind: sum(tiles) for kind, tiles in mapped.plan.memory.items()}
    return row | {"fits": True, "memory_bytes": memory} | {key: data[key] for key in STEP}


if __name__ == "__main__":
    print(json.dumps(predict_matched(*sys.argv[1:3]), allow_nan=False))
