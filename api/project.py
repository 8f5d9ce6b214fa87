"""A project folder: the model as data, the options, the plan and, for a machine, the emitted program."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from snnc.backends.cpu.memory import check_least
from snnc.backends.weights import load_weights
from snnc.compiler.graph import WEIGHTED, Array, Graph, OneToOne, Population, Sparse, Weighted
from snnc.compiler.plan import Plan
from snnc.compiler.sparse import entries_of
from snnc.compiler.step_program import StepProgram
from snnc.errors import ProjectFolderError
from snnc.graph_file import save_graph
from snnc.loading import load_project
from snnc.lowering import lowered
from snnc.options import OPTIONS_FILE, Options, to_data
from snnc.target_kinds import CPU, CUDA, UNPLACED, for_poptorch

if TYPE_CHECKING:
    from snnc.activity import Activity
    from snnc.ordering import Ordered
    from snnc.parting import Parts

Trainable: TypeAlias = Weighted | Population
PROFILE = "model/profile.json"
"""What the emulator counted in the last run."""
TRAINED = "model/trained.safetensors"
"""Weights of a project after training, by label."""


@dataclass(frozen=True, eq=False)
class Compiled:
    """A network on its way: what it is, what was asked for, its program and its plan (None where there are no tiles)."""

    graph: Graph
    options: Options
    program: StepProgram
    plan: Plan | None
    parts: Parts | Ordered | None = None
    """The parts or orders that the plan places, where it does not place the program as it is."""

    @property
    def placed(self) -> StepProgram:
        """The program that the plan is of."""
        return self.program if self.parts is None else self.parts.between.split


def compile_graph(graph: Graph, chosen: Options, activity: Activity | None = None, *, strategy: str = "snnc") -> Compiled:
    """Lower `graph` and map it onto the target; other strategies than "snnc" are baselines to compare it with.

    Raises
    ------
    StepsNeededError
        A machine needs a fixed number of steps, and none is known.
    """
    program = lowered(graph, chosen)
    if chosen.target in UNPLACED:
        return Compiled(graph, chosen, program, None)
    # The mapping is a third of all code, and only machines of tiles want it.
    from snnc.placing import map_graph

    found = map_graph(graph, program, chosen, activity, strategy=strategy)
    return Compiled(graph, chosen, program, found.plan, found.parts)


def write_project(compiled: Compiled, folder: Path) -> None:
    """Fill `folder`, which is empty or not there yet."""
    if compiled.plan is not None and for_poptorch(compiled.options.target):
        from snnc.backends.poptorch.emit import emit_poptorch

        emit_poptorch(compiled.program, compiled.plan, folder)
    elif compiled.plan is not None:
        from snnc.backends.poplar.emit import emit_poplar

        emit_poplar(compiled.placed, compiled.plan, folder)
    elif compiled.options.target == CPU:
        from snnc.backends.cpu.emit import emit_cpu

        chosen = compiled.options
        emit_cpu(compiled.program, folder, chosen.steps, chosen.batch, chosen.precision)
        _check_bound(chosen, folder)
    elif compiled.options.target == CUDA:
        from snnc.backends.cuda.emit import emit_cuda

        chosen = compiled.options
        emit_cuda(compiled.program, folder, chosen.steps, chosen.batch, chosen.precision)
        _check_bound(chosen, folder)
    (folder / "model").mkdir(parents=True, exist_ok=True)
    if compiled.parts is not None:
        from snnc.placing import save_placed

        save_placed(compiled.parts, folder)
    save_graph(compiled.graph, folder / "model")
    (folder / OPTIONS_FILE).write_text(json.dumps({"version": 1, **to_data(compiled.options)}, indent=1) + "\n", encoding="utf-8")


def _check_bound(chosen: Options, folder: Path) -> None:
    """Refuse a bound on memory that nothing keeps, and say where the batch that was asked for does not."""
    if chosen.memory is None:
        return
    description = json.loads((folder / "project.json").read_text(encoding="utf-8"))
    advice = check_least(description, description["fixed_steps"], chosen.batch, chosen.memory)
    if advice:
        warnings.warn(advice, UserWarning, stacklevel=2)


def read_project(folder: Path) -> Compiled:
    """Read a compiled project, with the plan that was made then.

    Raises
    ------
    ProjectFolderError
        The folder is no project, or damaged.
    """
    graph, chosen = load_project(folder)
    program = lowered(graph, chosen)
    if chosen.target in UNPLACED:
        return Compiled(graph, chosen, program, None)
    from snnc.placing import read_placed

    return Compiled(graph, chosen, program, *read_placed(graph, program, chosen, folder))


def read_trained(graph: Graph, folder: Path) -> Graph:
    """Return `graph` with the weights of the last training of the project in `folder`."""
    if not (folder / TRAINED).exists():
        return graph
    values = load_weights(folder / TRAINED)
    trained = graph.copy()
    for name, operation in list(graph.of_type(*WEIGHTED, Population)):
        trained.nx.nodes[name]["operation"] = _with_values(name, operation, values)
    return trained


def _with_values(name: str, operation: Trainable, values: Mapping[str, Array]) -> Trainable:
    own = {part: values[f"{name}.{part}"] for part in ("weight", "bias") if f"{name}.{part}" in values}
    if isinstance(operation, Population):
        learned = {p: values[f"{name}.{p}"] for p in operation.learnable if f"{name}.{p}" in values}
        shaped = {p: v.reshape(operation.shape) if v.ndim else v for p, v in learned.items()}
        return replace(operation, parameters={**operation.parameters, **shaped})
    if operation.weight is None:
        return operation
    weight = own.get("weight", operation.weight)
    if isinstance(operation, Sparse) and weight.shape == operation.shape:
        weight = entries_of(weight, operation)
    if weight.size != operation.weight.size:
        shapes = f"{weight.shape}, the model's {operation.weight.shape}"
        raise ProjectFolderError(f"the trained weights of {name!r} have shape {shapes}; compile the model again and train that.")
    weight = weight.reshape(operation.weight.shape)
    if isinstance(operation, OneToOne):
        return replace(operation, weight=weight)
    return replace(operation, weight=weight, bias=own.get("bias", operation.bias))
