"""snnc: the compiled training step; the variant is the compile target."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import snnc
from snnc.backends.runtime.events import Events
from snnc.benchmarks.cpu.network import labelled, labels, network, training
from snnc.benchmarks.cpu.problem import TrainingStepProblem
from snnc.benchmarks.cpu.workloads import GRADIENT_WINDOW, LEARNING_RATE, DenseLayer, Workload
from snnc.compiler.files.temporary import temporary_folder
from snnc.compiler.ir.graph import Array
from snnc.compiler.ir.plan import Precision
from snnc.driver.compiling import compile_to_folder
from snnc.driver.loading import as_graph
from snnc.options.compile_options import PRECISIONS, options
from snnc.session import Session

VERSIONS = ("snnc",)


def load() -> None:
    """Import the compiler's modules by compiling a network of one neuron."""
    tiny = Workload("tiny", 1.0, 1, 1, (1,), (DenseLayer(1, True),), 2)
    with temporary_folder("snnc-bench-") as folder:
        compile_to_folder(as_graph(network(tiny)), options("cpu", **training(tiny)), Path(folder) / "tiny")


class SnncEngine:
    """See :class:`~snnc.benchmarks.cpu.engine.BenchmarkEngine`."""

    def __init__(self, problem: TrainingStepProblem, mode: str, variant: str, device: str = "cpu") -> None:
        workload = problem.workload
        self._session = session(workload, mode, variant)
        self._start = labelled(workload, problem.weights)
        self._session.load_state_dict(self._start, strict=False)
        program = self._session.program
        x = Events.from_dense(problem.x) if mode == "events" else _placed(problem.x, device)
        self._inputs: dict[str, Any] = {program.inputs[0].id: x}
        self._y = problem.y
        if mode == "checkpoint":
            engine: Any = self._session.engine
            engine.forward(self._inputs, {})
            # 2 % more than the minimum predicted from the spikes of this forward pass.
            engine.memory = engine.least_memory(workload.steps, workload.batch) * 51 // 50
        names = {p.label: name for name, p in program.parameters.items()}
        self._parameters = {name: names[label] for name, label in labels(workload).items()}

    def step(self) -> float:
        return float(self._session.engine.train_batch(self._inputs, self._y, LEARNING_RATE))

    def gradients(self) -> dict[str, Array]:
        gradients = self._session.engine.gradients()  # type: ignore[attr-defined]  # every engine that trains has this method
        return {name: gradients[parameter] for name, parameter in self._parameters.items()}

    def weights(self) -> dict[str, Array]:
        parameters = self._session.engine.get_parameters()
        return {name: parameters[parameter] for name, parameter in self._parameters.items()}

    def reset(self) -> None:
        self._session.load_state_dict(self._start, strict=False)


def session(workload: Workload, mode: str, target: str) -> Session:
    """Compile and build a workload's training step; its weights are random."""
    window = GRADIENT_WINDOW if mode == "window" else None
    precision = cast(Precision, mode) if mode in PRECISIONS else "float32"
    return snnc.compile(network(workload), target, precision=precision, **training(workload, window))


def _placed(x: Array, device: str) -> Any:
    if device == "cpu":
        return x
    import torch

    return torch.from_numpy(x).to(device)


ENGINE = SnncEngine
