"""A project folder: the model as data, the options, the plan and, for a machine, the emitted program."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from snnc.activity import Activity
from snnc.backends.weights import load_weights
from snnc.compiler.graph import WEIGHTED, Array, Graph, OneToOne, Population, Sparse, Weighted
from snnc.compiler.lower import lower
from snnc.compiler.mapping import make_plan
from snnc.compiler.mapping.errors import TooBigError
from snnc.compiler.mapping.host_overlap import Wanted, plan_overlap
from snnc.compiler.mapping.plan_json import plan_from_json
from snnc.compiler.parting import prepare
from snnc.compiler.passes.fill_sparse import FillSparse
from snnc.compiler.plan import Plan
from snnc.compiler.sparse import entries_of
from snnc.compiler.step_program import StepProgram
from snnc.compiler.target import Target
from snnc.compiler.targets import load_target
from snnc.errors import ProjectFolderError, StepsNeededError
from snnc.graph_file import save_graph
from snnc.loading import load_project
from snnc.options import CPU, CUDA, OPTIONS_FILE, UNPLACED, Options, for_poptorch, machine_of, to_data
from snnc.ordering import Ordered, load_orders, map_orders, save_orders
from snnc.parting import Mapped, Parter, Parts, load_parts, map_parts, save_parts

DEFAULT_BATCH = 32
FILLED = 0.5
"""Part of its places with an entry from which on a sparse weight is no smaller than a dense one: each takes 8 bytes."""
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
    found = map_graph(graph, program, chosen, activity, strategy=strategy)
    return Compiled(graph, chosen, program, found.plan, found.parts)


def lowered(graph: Graph, chosen: Options) -> StepProgram:
    """Write `graph` as a step program in a form that the target runs."""
    return lower(_filled(graph, chosen), **_lowering(chosen), truncate=chosen.truncate)


def _filled(graph: Graph, chosen: Options) -> Graph:
    return graph if chosen.target in UNPLACED else FillSparse(trains=chosen.loss is not None, least=FILLED)(graph)


def _lowering(chosen: Options) -> dict[str, Any]:
    return {
        "loss": chosen.loss,
        "optimizer": chosen.optimizer,
        "surrogate": chosen.surrogate,
        "gradient_window": chosen.gradient_window,
        "steps": chosen.steps,
    }


def parter_of(graph: Graph, program: StepProgram, chosen: Options, activity: Activity | None = None) -> Parter:
    """Return what cuts `graph`, whose program is `program`, into parts."""
    return Parter(prepare(_filled(graph, chosen), chosen.loss), program, _lowering(chosen), activity, chosen.seed)


def map_graph(
    graph: Graph,
    program: StepProgram,
    chosen: Options,
    activity: Activity | None = None,
    *,
    machine: Target | None = None,
    strategy: str = "snnc",
    chips: int | None = None,
) -> Mapped:
    """Map a lowered graph as :func:`map_program` does, populations with sparse connections in as many parts as are fastest."""
    given = partial(map_program, chosen=chosen, machine=machine, strategy=strategy, chips=chips)
    # What is to stand in another program keeps the author's order of neurons.
    if strategy != "snnc" or for_poptorch(chosen.target):
        return Mapped(given(program, activity=activity))

    def mapper(some: StepProgram, spikes: Activity | None, quick: bool = False) -> Plan:
        return given(some, activity=spikes, quick=quick)

    if (chosen.parts or 1) == 1 and not any(graph.of_type(Sparse)):
        return map_orders(program, mapper, activity)
    target = machine or load_target(machine_of(chosen.target))
    return map_parts(parter_of(graph, program, chosen, activity), mapper, chips or target.chips, chosen.parts)


def map_program(
    program: StepProgram,
    chosen: Options,
    activity: Activity | None = None,
    *,
    machine: Target | None = None,
    strategy: str = "snnc",
    chips: int | None = None,
    quick: bool = False,
) -> Plan:
    """Map a lowered program; with an activity, take the faster of windows that hold everything and windows that hold what was seen.

    Parameters
    ----------
    program, chosen
        The program, and what was asked for.
    activity
        Measured or assumed spikes.
    machine
        In place of the target that `chosen` names.
    strategy, chips
        As :func:`~snnc.compiler.mapping.make_plan` takes them.
    quick
        As :func:`~snnc.compiler.mapping.make_plan` takes it.

    Raises
    ------
    StepsNeededError
        A machine needs a fixed number of steps, and none is known.
    """
    target = machine or load_target(machine_of(chosen.target))

    def planned(some: Target) -> Plan:
        return _map_onto(some, program, chosen, activity, strategy=strategy, chips=chips, quick=quick)

    # PopTorch streams what its operations read; baselines and quick looks compare placements.
    if quick or strategy != "snnc" or for_poptorch(chosen.target):
        return planned(target)
    return plan_overlap(planned, program, target, Wanted(chosen.overlap_host_io, chosen.num_io_tiles))


def _map_onto(
    target: Target, program: StepProgram, chosen: Options, activity: Activity | None, *, strategy: str, chips: int | None, quick: bool
) -> Plan:
    """Map onto all tiles of `target`."""
    steps = program.steps
    if steps is None:
        raise StepsNeededError(
            f"{program.name!r} runs any number of steps, and {chosen.target} needs to know it; give steps (--steps 100)."
        )
    size = chosen.batch or DEFAULT_BATCH
    given = partial(make_plan, program, target, steps=steps, batch=size, mode=chosen.mode, strategy=strategy, chips=chips)
    # A custom operation has its tiles alone.
    streaming = "off" if for_poptorch(chosen.target) and chosen.streaming == "auto" else chosen.streaming
    make = partial(given, recompute=chosen.recompute, streaming=streaming)
    if quick:
        make = partial(make, quick=True)
    if activity is None:
        return make(capacity=chosen.capacity)
    if not activity.peak:
        return make(activity=activity.mean, activity_source=activity.source, near=activity.near, capacity=chosen.capacity)
    widths = {name: math.prod(program.buffers[name].shape) for name in activity.mean}
    forward: list[int | Mapping[str, int]] = [widths, activity.capacities(program)] if chosen.capacity is None else [chosen.capacity]
    backward: list[Mapping[str, int]] = [widths, activity.gradient_capacities(program)] if activity.near else [{}]
    candidates = [
        # Dense gradients have no entries: only one of the two tries them.
        {
            "capacity": capacity,
            "gradient_capacity": {name: entries[name] for name in activity.near},
            "gradients": "windowed" if activity.near and entries is widths else "auto",
        }
        for capacity, entries in itertools.product(forward, backward)
    ]
    measured = {"rates": activity.rates, "near": activity.near, "counts": activity.counts, "near_counts": activity.near_counts}
    seen = partial(make, activity=activity.mean, activity_source=activity.source, **measured)
    return seen(**_faster(seen, candidates))


def _faster(make: Callable[..., Plan], candidates: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the capacities with the fastest plan before local search; the last of them when none fits."""
    found: list[tuple[float, int]] = []
    for index, capacities in enumerate(candidates) if len(candidates) > 1 else ():
        with suppress(TooBigError):
            found.append((make(**{**capacities, "effort": 0}).cycles, index))
    return candidates[min(found, default=(0.0, -1))[1]]


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
    elif compiled.options.target == CUDA:
        from snnc.backends.cuda.emit import emit_cuda

        chosen = compiled.options
        emit_cuda(compiled.program, folder, chosen.steps, chosen.batch, chosen.precision)
    (folder / "model").mkdir(parents=True, exist_ok=True)
    if isinstance(compiled.parts, Ordered):
        save_orders(compiled.parts, folder)
    elif compiled.parts is not None:
        save_parts(compiled.parts.parting, folder)
    save_graph(compiled.graph, folder / "model")
    (folder / OPTIONS_FILE).write_text(json.dumps({"version": 1, **to_data(compiled.options)}, indent=1) + "\n", encoding="utf-8")


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
    try:
        plan = plan_from_json((folder / "plan.json").read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ProjectFolderError(f"the plan of the project {str(folder)!r} cannot be read ({error}); compile the model again.") from None
    parts = load_orders(lambda: program, folder) or load_parts(lambda: parter_of(graph, program, chosen), folder)
    return Compiled(graph, chosen, program, plan, parts)


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
