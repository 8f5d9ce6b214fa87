"""The numbers that every engine must produce, from snnc's NumPy reference: of the checked step, and of the first timed step."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from snnc.backends.reference.engine import ReferenceEngine
from snnc.backends.reference.forward import run_forward
from snnc.backends.reference.memory import SequenceArrays
from snnc.benchmarks.conditions import Conditions, digest
from snnc.benchmarks.cpu.network import SURROGATE, labels, loss_of, network
from snnc.benchmarks.cpu.problem import TrainingStepProblem, make_problem
from snnc.benchmarks.cpu.workloads import GRADIENT_WINDOW, LEARNING_RATE, THRESHOLD, Workload
from snnc.compiler.ir.graph import Array
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.losses import parse_loss
from snnc.compiler.lowering.lower import lower
from snnc.compiler.neurons.surrogates.library import parse_surrogate
from snnc.options.optimizers import parse_optimizer

STEPS, BATCH = 16, 4
"""Numbers of time steps and samples of the checked step."""
MARGIN: Final = 3e-6
"""Minimum allowed distance of a membrane potential from the threshold and from the end of the gradient window. Rounding errors of sums are
smaller, so they change no spike."""
GRID: Final = 2.0**-5
"""Spacing of the weights of hidden layers in the checked step."""
SEEDS: Final = 60
"""Maximum number of problems that are drawn."""


@dataclass(frozen=True)
class Expected:
    """Loss and gradients of one step, and the weights after it, in double precision."""

    loss: float
    gradients: dict[str, Array]
    weights: dict[str, Array]


@dataclass(frozen=True)
class Check:
    """A problem small enough for an exact check, with its numbers for the exact and for the windowed gradient."""

    problem: TrainingStepProblem
    exact: Expected
    window: Expected

    def of(self, exact: bool) -> Expected:
        """Return the expected numbers of an engine with exact or with windowed gradients."""
        return self.exact if exact else self.window

    def cosine(self) -> float:
        """Return the cosine of the angle between the exact and the windowed gradient."""
        a, b = (np.concatenate([g.reshape(-1) for g in e.gradients.values()]) for e in (self.exact, self.window))
        return float(a @ b / max(np.linalg.norm(a) * np.linalg.norm(b), 1e-300))


def make_check(workload: Workload) -> Check:
    """Draw a small problem whose spikes do not depend on rounding, and compute its numbers.

    Raise ArithmeticError if none of :data:`SEEDS` problems is such a problem.
    """
    small = workload.checked(STEPS, BATCH)
    for seed in range(SEEDS):
        problem = _with_coarse_weights(make_problem(small, seed))
        exact, window = _expected(problem, None), _expected(problem, GRADIENT_WINDOW)
        if exact is not None and window is not None:
            return Check(problem, exact, window)
    raise ArithmeticError(
        f"{workload.label}: in each of {SEEDS} problems, a membrane potential lies within {MARGIN:g} of the threshold or "
        "of the end of the gradient window"
    )


def _with_coarse_weights(problem: TrainingStepProblem) -> TrainingStepProblem:
    """Replace the weights by values for which rounding in 16-bit products changes no spike.

    Weights of hidden layers become multiples of :data:`GRID` (of a larger power of two if the network's currents are larger), and biases
    plus or minus half of it. Currents up to eight standard deviations are then exact in bfloat16, and none equals the threshold. Weights
    of the readout, which does not spike, are truncated to bfloat16.
    """
    grid = GRID * 2.0 ** max(0, math.ceil(math.log2(problem.workload.first_current / 0.5)))

    def coarse(name: str, weight: Array) -> Array:
        if name.startswith("readout"):
            return (weight.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
        if name.endswith("bias"):
            return np.where(weight < 0, -grid / 2, grid / 2).astype(np.float32)
        return (grid * np.round(weight / grid)).astype(np.float32)

    return replace(problem, weights={name: coarse(name, weight) for name, weight in problem.weights.items()})


def program_of(workload: Workload, window: float | None = None) -> StepProgram:
    """Lower a workload for training with Adam, with the gradient window from `window` upwards if it is given."""
    return lower(
        network(workload).graph(),
        loss=parse_loss(loss_of(workload)),
        optimizer=parse_optimizer("adam"),
        surrogate=parse_surrogate(SURROGATE),
        gradient_window=None if window is None else (window, np.inf),
        steps=workload.steps,
    )


def _expected(problem: TrainingStepProblem, window: float | None) -> Expected | None:
    """Train one step on a problem; None if a membrane potential lies within the margin."""
    program = program_of(problem.workload, window)
    engine, names = ReferenceEngine(program, np.float64), _parameters(program, problem.workload)
    values = {names[name]: value for name, value in problem.weights.items()}
    engine.set_parameters(values)
    levels = (0.0,) if window is None else (0.0, window)
    if _margin(program, problem, engine.get_parameters(), levels) <= MARGIN:
        return None
    loss = engine.train_batch({program.inputs[0].id: problem.x.astype(np.float64)}, problem.y, LEARNING_RATE)
    gradients, weights = engine.gradients(), engine.get_parameters()
    return Expected(loss, {name: gradients[p] for name, p in names.items()}, {name: weights[p] for name, p in names.items()})


def _parameters(program: StepProgram, workload: Workload) -> dict[str, str]:
    by_label = {p.label: name for name, p in program.parameters.items()}
    return {name: by_label[label] for name, label in labels(workload).items()}


def _margin(program: StepProgram, problem: TrainingStepProblem, parameters: dict[str, Array], levels: tuple[float, ...]) -> float:
    """Return the smallest distance of a membrane potential to one of `levels`, which are relative to the threshold."""
    memory = _run(program, problem, parameters, np.dtype(np.float64))
    return min(float(np.abs(v - THRESHOLD - at).min()) for v in _membranes(program, memory) for at in levels)


def _membranes(program: StepProgram, memory: SequenceArrays) -> list[Array]:
    """Return the membrane potentials [T, B, n] of each hidden layer, the only state of its neurons."""
    hidden = [p for p in program.populations if p.label.startswith("hidden") and p.kernel.states]
    return [memory[f"{p.id}_{p.kernel.states[0]}"][1:] for p in hidden]


def _run(program: StepProgram, problem: TrainingStepProblem, parameters: dict[str, Array], dtype: np.dtype[np.floating]) -> SequenceArrays:
    steps, batch = problem.x.shape[:2]
    memory = SequenceArrays(program, steps, batch, {name: p.astype(dtype) for name, p in parameters.items()}, dtype)
    memory.set_initial({})
    memory[f"{program.inputs[0].id}_in"][:] = problem.x.reshape(steps, batch, -1)
    for t in range(steps):
        for op in program.forward:
            run_forward(op, memory, t)
    return memory


@dataclass(frozen=True)
class ReferenceStep:
    """Numbers of the first step of a timed problem, in single precision."""

    loss: float
    activity: float
    """Number of spikes per hidden neuron and step."""
    conditions: Conditions
    """Hashes of weights and data, and the activity of the input and of each hidden layer."""


def reference_step(problem: TrainingStepProblem) -> ReferenceStep:
    """Return the numbers of the first step of `problem`; every engine's loss must be close to this loss."""
    workload = problem.workload
    program = program_of(workload)
    names = _parameters(program, workload)
    values = {name: p.value for name, p in program.parameters.items()} | {names[name]: value for name, value in problem.weights.items()}
    memory = _run(program, problem, values, np.dtype(np.float32))
    assert program.loss is not None
    record = next(o.record for o in program.outputs if o.id == program.loss_output)
    loss, _ = program.loss.value_and_gradient(memory[record], problem.y)
    fired = [v > THRESHOLD for v in _membranes(program, memory)]
    rates = {f"hidden{number}": float(f.mean()) for number, f in enumerate(fired, 1)}
    conditions = Conditions(digest(problem.weights), digest({"x": problem.x, "y": problem.y}), {"input": float(problem.x.mean()), **rates})
    return ReferenceStep(float(loss), float(sum(f.sum() for f in fired) / sum(f.size for f in fired)), conditions)
