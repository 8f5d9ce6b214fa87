"""The input of every engine: one batch and the initial weights, from a seed, in one npz archive."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from snnc.benchmarks.cpu.workloads import ConvLayer, Workload
from snnc.compiler.ir.graph import Array
from snnc.data.arrays import read_arrays

ASSUMED = 0.05
"""Assumed number of spikes per hidden neuron and step; weights that read a hidden layer are scaled for this activity."""


@dataclass(frozen=True)
class TrainingStepProblem:
    """One training step."""

    workload: Workload
    x: Array
    """[T, B, *shape], float32, 0 or 1."""
    y: Array
    """[B], int64."""
    weights: Mapping[str, Array]
    """``hidden1.weight`` [out, in] or [out, in, k, k], ``hidden1.bias``, ``hidden1.recurrent`` [out, out], …, ``readout.weight``,
    ``readout.bias``; float32."""


def make_problem(workload: Workload, seed: int = 0) -> TrainingStepProblem:
    """Draw inputs, labels and weights; without a readout, the neurons of the last layer are the classes."""
    rng = np.random.default_rng(seed)
    weights = _weights(workload, rng)
    x = (rng.random((workload.steps, workload.batch, *workload.shape)) < workload.density).astype(np.float32)
    return TrainingStepProblem(workload, x, rng.integers(0, workload.outputs, workload.batch), weights)


def _weights(workload: Workload, rng: np.random.Generator) -> dict[str, Array]:
    """Draw small biases, and uniform weights scaled so that a layer's currents have the workload's standard deviation at any density."""
    shapes, weights = workload.shapes(), {}

    def draw(shape: tuple[int, ...], current: float, activity: float) -> Array:
        width = current * math.sqrt(3 / (math.prod(shape[1:]) * activity))
        return rng.uniform(-width, width, shape).astype(np.float32)

    for n, layer in enumerate(workload.layers):
        current, activity = (workload.first_current, workload.density) if n == 0 else (workload.later_current, ASSUMED)
        if isinstance(layer, ConvLayer):
            shape: tuple[int, ...] = (layer.channels, shapes[n][0], layer.kernel, layer.kernel)
        else:
            shape = (layer.neurons, math.prod(shapes[n]))
        weights[f"hidden{n + 1}.weight"] = draw(shape, current, activity)
        weights[f"hidden{n + 1}.bias"] = rng.uniform(-0.01, 0.01, shape[0]).astype(np.float32)
        if not isinstance(layer, ConvLayer) and layer.recurrent:
            weights[f"hidden{n + 1}.recurrent"] = draw((layer.neurons, layer.neurons), workload.later_current / 2, ASSUMED)
    if not workload.classes:
        return weights
    weights["readout.weight"] = draw((workload.classes, math.prod(shapes[-1])), workload.later_current, ASSUMED)
    weights["readout.bias"] = np.zeros(workload.classes, np.float32)
    return weights


def write_problem(problem: TrainingStepProblem, path: Path) -> None:
    """Write a problem to an npz archive, with one bit per input."""
    weights = {f"w:{name}": value for name, value in problem.weights.items()}
    bits = np.packbits(problem.x.astype(bool).reshape(-1))
    np.savez(path, workload=np.array(json.dumps(problem.workload.to_data())), x=bits, y=problem.y, **weights)  # type: ignore[arg-type]


def read_problem(path: Path) -> TrainingStepProblem:
    """Undo :func:`write_problem`."""
    arrays = read_arrays(path)
    workload = Workload.from_data(json.loads(str(arrays["workload"])))
    shape = (workload.steps, workload.batch, *workload.shape)
    x = np.unpackbits(arrays["x"], count=math.prod(shape)).reshape(shape).astype(np.float32)
    return TrainingStepProblem(workload, x, arrays["y"], {name[2:]: value for name, value in arrays.items() if name.startswith("w:")})
