"""Emitter of a step program and its plan as a Python package for PopTorch: C++ of the custom operation, tables, and Python modules."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, fields
from pathlib import Path
from typing import Final

from snnc.backends.codegen.constants import WEIGHTS
from snnc.backends.codegen.safetensors_file import safetensors
from snnc.backends.folders.manifest import PROJECT_FORMAT
from snnc.backends.folders.project import Chunk, atomic_folder, write_file
from snnc.backends.poplar.build import TABLES
from snnc.backends.poplar.emit import print_files
from snnc.backends.poplar.parts import Body
from snnc.backends.poplar.tables import plan_tables
from snnc.backends.poptorch.build import SHARED_PARTS, SOURCES, STATISTICS
from snnc.backends.poptorch.composed_loss import composed_context, targets_description
from snnc.backends.poptorch.operation import PopartOperation, assemble, operation_context
from snnc.backends.poptorch.statistics import running_statistics
from snnc.compiler.ir.plan import Plan
from snnc.compiler.ir.plan_json import plan_to_json
from snnc.compiler.ir.shapes import size
from snnc.compiler.ir.step_program import OutputInfo, StepProgram
from snnc.compiler.losses.composed import Composed
from snnc.compiler.losses.optimizers import Optimizer, UpdateOptions, settings_of
from snnc.compiler.lowering.spike_limits import limits_of, without_limits
from snnc.compiler.lowering.window_values import window_parameters

DOMAIN: Final = "snnc"
SHARED: Final = {
    "constants.hpp": "common/constants.hpp",
    **{f"snnc_files.{kind}": f"common/snnc_files.{kind}" for kind in ("hpp", "cpp")},
    **{f"{part}.{kind}": f"poplar/{part}.{kind}" for part in SHARED_PARTS for kind in ("hpp", "cpp")},
    "codelets.cpp": "poplar/codelets.cpp",
}
"""Source that the Poplar backend also emits -> path for :func:`snnc.backends.codegen.source_templates.source_of`."""
OWN: Final = (
    "views.hpp",
    "operation_graph.hpp",
    "operation_graph.cpp",
    "program.hpp",
    "network.hpp",
    "operation.cpp",
    "Makefile",
    "README.txt",
    "train.py",
)
"""Other files of every package."""
PACKAGE: Final = "spiking_network"
MODULES: Final = ("__init__.py", "description.py", "operation.py", "module.py", "weights.py", "options.py", "data.py", "values.py")
MASKS: Final = "masks.py"
"""Additional module of packages that train dropout."""


def emit_poptorch(program: StepProgram, plan: Plan, folder: Path) -> Path:
    """Write to `folder` the package of `program` as mapped by `plan`, completely or not at all.

    Raises a PlanMismatchError, UnsupportedOnPoplarError, UnsupportedOnPopTorchError or HalfDeltasError if program and plan do not match, or
    use a feature that a custom operation does not support; an OutputFolderError or FolderInUseError if the folder cannot be written or
    replaced.
    """
    operation = PopartOperation(without_limits(program), plan, limits_of(program))
    operation.net.check()
    files: dict[str, Iterable[Chunk]] = {name: (text.encode(),) for name, text in render(operation).items()}
    files |= {"plan.json": (plan_to_json(plan).encode(),), TABLES: plan_tables(operation.net)}
    files |= {WEIGHTS: safetensors(operation.stored_values)}
    with atomic_folder(folder) as temporary:
        digests = {name: write_file(temporary / name, chunks) for name, chunks in sorted(files.items())}
        head = {"format": PROJECT_FORMAT, "kind": "poptorch", "name": program.name, "target": plan.target.name, "files": digests}
        write_file(temporary / "project.json", (json.dumps(head, indent=1).encode(),))
    return folder


def render(operation: PopartOperation) -> dict[str, str]:
    """Return all text files by name."""
    assembly, context = assemble(operation)
    context |= {"codelets": assembly.codelets, "sources": SOURCES.all, **operation_context(operation), "domain": DOMAIN, "package": PACKAGE}
    names = {**SHARED, **{n: f"poptorch/{n}" for n in OWN}, **{f"{PACKAGE}/{n}": f"poptorch/package/{n}" for n in MODULES}}
    names |= {STATISTICS: f"poptorch/{STATISTICS}"} if operation.norms else {}
    names |= {f"{PACKAGE}/{MASKS}": f"poptorch/package/{MASKS}"} if operation.masks else {}
    loss = operation.program.loss
    if operation.plan.training and loss is not None:
        names |= {"train_popdist.py": "poptorch/train_popdist.py", f"{PACKAGE}/loss.py": f"poptorch/package/loss_{loss.name}.py"}
        if isinstance(loss, Composed):
            context["loss"] = composed_context(loss, operation.plan.steps)
        else:
            context["loss"] = {"steps": operation.plan.steps, **asdict(loss)}  # type: ignore[call-overload]  # losses are dataclasses
    # The name contains a digest of the code and the tables, so that different networks are different operations for PopART.
    content = print_files(operation.net, {"network.hpp": names["network.hpp"]}, context | {"operation": ""})["network.hpp"]
    tables = b"".join(bytes(chunk) for chunk in plan_tables(operation.net))
    context["operation"] = f"Network{hashlib.sha256(content.encode() + tables).hexdigest()[:12]}"
    texts = print_files(operation.net, names, context)
    texts["network.json"] = json.dumps(description(operation, context["operation"]), indent=1) + "\n"
    return texts


def description(operation: PopartOperation, name: str) -> Body:
    """Return ``network.json``: data for the package's Python modules, with the author's names, which the C++ has only in comments."""
    program, plan, net = operation.program, operation.plan, operation.net
    kinds = {store.owner: store.kind for store in net.stores.values()}
    return {
        "operation": name,
        "domain": DOMAIN,
        "steps": plan.steps,
        "batch": plan.batch,
        **({"ipus": plan.target.chips} if plan.target.chips > 1 else {}),
        "inputs": [
            {"name": i.id, "label": i.label, "shape": list(i.shape), "static": i.static, "kind": kinds.get(i.id, i.kind)}
            | ({"gradient": True} if i.id in operation.with_gradient else {})
            for i in program.inputs
        ],
        "operation_inputs": [i.name for i in operation.operation_inputs],
        "operation_outputs": [{"name": o.record, "shape": [plan.batch, plan.steps, *o.shape]} for o in operation.outputs]
        + [{"name": name, "shape": [size]} for name, size in operation.counted.items()],
        "counted": len(operation.counted),
        "outputs": [{"label": o.label, "shape": list(o.shape), **_origin(operation, o)} for o in operation.visible_outputs],
        "parameters": [
            {"name": p.name, "label": p.label, "shape": list(p.value.shape), "learned": p.name in operation.learned}
            for p in program.parameters.values()
        ],
        "states": [name for name in operation.stored_values if name not in program.parameters],
        **({"masks": [_mask(operation, name) for name in operation.masks]} if operation.masks else {}),
        **({"targets": targets_description(program.loss, plan.steps)} if plan.training and isinstance(program.loss, Composed) else {}),
        **({"statistics": [running_statistics(program, n, plan.steps * plan.batch) for n in operation.norms]} if operation.norms else {}),
        "limits": [_limit(operation, buffer) for buffer in operation.limits],
        "windows": _windows(program),
        "loss_output": None if operation.loss_output is None else operation.visible_outputs.index(operation.loss_output),
        "optimizer": None if program.optimizer is None else optimizer_settings(program, program.optimizer),
    }


def _mask(operation: PopartOperation, name: str) -> Body:
    """Return the description of a dropout mask: `rate` and `seed` are names of parameters, `number` counts the dropout layers from 0."""
    layer = operation.masks[name]
    about = {"name": name, "label": operation.program.population(layer.population).label, "number": layer.number}
    return about | {"rate": layer.rate, "seed": layer.seed, "neurons": layer.neurons}


def _limit(operation: PopartOperation, buffer: str) -> Body:
    """Return the description of a source with a spike limit; spikes of an input are dropped before they are sent to the device."""
    program = operation.program
    input_index = next((n for n, i in enumerate(program.inputs) if buffer == f"{i.id}_in"), None)
    width = size(program.buffers[buffer].shape)
    about = {"source": buffer, "width": width, "capacity": int(operation.limits[buffer][0]), "input": input_index}
    return about | {"buffer": f"{buffer}_limit" if buffer in operation.limited else None}


def _windows(program: StepProgram) -> Body:
    """Return the parameters with the lower ends of gradient windows, and the lowest permitted value; none without gradient windows."""
    windows = window_parameters(program)
    return {"low": [], "widest": None} if windows is None else {"low": list(windows.low), "widest": windows.widest[0]}


def optimizer_settings(program: StepProgram, optimizer: Optimizer) -> Body:
    """Return the settings of the optimiser; with groups, also the learning rate factor and the weight decay of each learned parameter."""
    left_out = ("nesterov", *(f.name for f in fields(UpdateOptions)))
    settings = {name: value for name, value in asdict(optimizer).items() if name not in left_out}
    if optimizer.weight_decay:
        settings["weight_decay"] = optimizer.weight_decay
    if optimizer.groups:
        of_group = {op.parameter: settings_of(optimizer, program.parameters[op.parameter].label) for op in program.update}
        settings["parameters"] = {name: {"lr": group.lr, "weight_decay": group.weight_decay} for name, group in of_group.items()}
    return settings


def _origin(operation: PopartOperation, output: OutputInfo) -> Body:
    """Return the origin of an output: a record of the operation, or an input with a delay in steps."""
    if output in operation.outputs:
        return {"record": operation.outputs.index(output)}
    input_index = next(n for n, i in enumerate(operation.program.inputs) if output.source.buffer == f"{i.id}_in")
    return {"input": input_index, "delay": output.source.delay}
