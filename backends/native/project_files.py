"""Writes the folder of a project for a CPU or GPU: sources, tables, weights and ``project.json``."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import numpy as np

from snnc.backends.codegen.constants import WEIGHTS, CppConstant
from snnc.backends.codegen.names import comment_text
from snnc.backends.codegen.safetensors_file import safetensors, safetensors_header
from snnc.backends.codegen.source_templates import source_of, source_templates
from snnc.backends.codegen.updates import group_literals, printed_rule
from snnc.backends.folders.manifest import PROJECT_FORMAT
from snnc.backends.folders.project import Chunk, atomic_folder, write_file
from snnc.backends.native.composed_loss import composed_context
from snnc.backends.native.library import ABI_VERSION, SHARED_SOURCES
from snnc.backends.native.memory import Needs
from snnc.compiler.ir.graph import Array
from snnc.compiler.ir.step_operations import Fill, NeuronStep
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.losses import Loss, MeanSquaredCount
from snnc.compiler.losses.composed import Composed
from snnc.compiler.losses.optimizers import Optimizer

Context = dict[str, Any]
TABLES: Final = "tables.bin"
"""File of the tables of connections that are not dense."""
_STEPS: Final = 100
_BATCH: Final = 32
"""Default number of steps and batch size of a session, which can change them at run time."""


def session_sizes(program: StepProgram, steps: int | None, batch: int | None) -> dict[str, int]:
    """Return the initial sizes of a session."""
    return {"steps": steps or program.steps or _STEPS, "batch": batch or _BATCH}


def initial_values(program: StepProgram) -> dict[str, Array]:
    """Return, by tensor name, the parameters, the initial states and delayed outputs of a sample and, if it trains, the learning rate."""
    values: dict[str, Array] = {name: np.atleast_1d(p.value) for name, p in program.parameters.items()}
    delayed = {op.source.buffer for op in program.forward if not isinstance(op, Fill | NeuronStep) and op.source.delay}
    for population in program.populations:
        for state, value in zip(population.kernel.states, population.initial, strict=True):
            name = f"{population.id}_{state}"
            size = math.prod(program.buffers[name].shape)
            values[f"{name}_initial"] = np.broadcast_to(np.asarray(value, dtype=np.float32).reshape(-1), (size,))
        for name, value in population.before.items():
            if name in delayed:
                values[f"{name}_initial"] = np.broadcast_to(value.reshape(-1), program.buffers[name].shape)
    if program.optimizer is not None:
        values["lr"] = np.array([program.optimizer.lr], dtype=np.float32)
    return values


_templates = cache(source_templates)


def program_context(program: StepProgram, values: Mapping[str, Array], sizes: Mapping[str, int], holder: str = "") -> Context:
    """Return the template data that the sources of CPU and GPU programs share.

    `values` and `sizes` are results of :func:`initial_values` and :func:`session_sizes`; see :func:`training_context` for `holder`.
    """
    trains = program.optimizer is not None
    return {
        "title": comment_text(program.name),
        **sizes,
        "trainable": str(trains).lower(),
        "training": trains,
        "stored": safetensors_header(values)[1],
        "half_states": any(p.kernel.halves for p in program.populations),
        "groups": group_literals(program),
        "inputs": [{"id": i.id, "label": comment_text(i.label)} for i in program.inputs],
        **training_context(program.loss, program.optimizer, holder),
    }


def training_context(loss: Loss | None, optimizer: Optimizer | None, holder: str = "") -> Context:
    """Return the template data of the loss and its constants (``settings.hpp``), and of the optimiser's equations (``optimizer.hpp``).

    `holder` is the prefix of the arrays in these equations, such as ``of.`` in ``of.value[i]``.
    """
    settings = []
    if isinstance(loss, MeanSquaredCount):
        settings = [
            CppConstant("double", "CORRECT", repr(float(loss.correct_rate)), "Desired spikes per step of the label's class."),
            CppConstant("double", "INCORRECT", repr(float(loss.incorrect_rate)), "Desired spikes per step of the other classes."),
        ]
    return {
        "loss": None if loss is None else loss.name,
        "composed": composed_context(loss) if isinstance(loss, Composed) else None,
        "rule": None if optimizer is None else printed_rule(optimizer, holder),
        "settings": settings,
    }


def runtime_files(target: str, training: Collection[str]) -> list[str]:
    """Return the names of a target's source files that are the same in every project, except losses and the files in `training`."""
    folder = files("snnc.templates") / target / "runtime"
    names = sorted(file.name for file in folder.iterdir() if file.is_file())
    return [name for name in names if name not in training and not name.startswith("loss_")]


def rendered(context: Mapping[str, Any], target: str, names: Iterable[str], loss: str, constants: Sequence[CppConstant]) -> dict[str, str]:
    """Return the contents of the text files of a project, by file name: those of `names`, and those that all targets share.

    If the program trains, `loss` is also rendered, from a template named after the loss function, such as ``loss_ce_rate.cpp``.
    """
    paths = {n: f"common/{n}" for n in (*SHARED_SOURCES, "constants.hpp")}
    paths |= {n: f"native/{n}" for n in ("native_session.hpp", "native_session.cpp")} | {n: f"{target}/{n}" for n in names}
    if context.get("half_weights"):
        paths |= {"half_updates.hpp": "common/half_updates.hpp"}
    if context["training"]:
        paths |= {"settings.hpp": "common/settings.hpp", loss: f"{target}/{loss.replace('loss', 'loss_' + context['loss'])}"}
    return {name: source_of(_templates(), path, {**context, "constants": constants}) for name, path in paths.items()}


def write_project_files(
    folder: Path,
    program: StepProgram,
    target: str,
    sizes: Mapping[str, int],
    texts: Mapping[str, str],
    tables: Iterable[Chunk],
    values: Mapping[str, Array],
    bytes_per_step: int,
    memory: Needs,
    more: Mapping[str, Any] | None = None,
) -> Path:
    """Write a project to `folder`, completely or not at all.

    `sizes`, `texts` and `values` are results of :func:`session_sizes`, :func:`rendered` and :func:`initial_values`; `bytes_per_step` is the
    memory that a session needs for each step and sample of a sequence without checkpoints; `more` contains further members of
    ``project.json``.

    Raises an OutputFolderError if the folder cannot be written.
    """
    files: dict[str, Iterable[Chunk]] = {name: (text.encode(),) for name, text in texts.items()}
    files |= {TABLES: tables, WEIGHTS: safetensors(values)}
    with atomic_folder(folder) as unfinished:
        digests = {name: write_file(unfinished / name, chunks) for name, chunks in sorted(files.items())}
        description = _description(program, target, sizes, bytes_per_step, memory) | dict(more or {}) | {"files": digests}
        write_file(unfinished / "project.json", (json.dumps(description, indent=1).encode(),))
    return folder


def _description(program: StepProgram, target: str, sizes: Mapping[str, int], bytes_per_step: int, memory: Needs) -> dict[str, Any]:
    learned = {u.parameter for u in program.update}
    return {
        "format": PROJECT_FORMAT,
        "abi": ABI_VERSION,
        "kind": target,
        "name": program.name,
        "target": target,
        **sizes,
        "fixed_steps": program.steps,
        "bytes_per_step": bytes_per_step,
        "memory": asdict(memory),
        "training": program.optimizer is not None,
        "inputs": [{"label": i.label, "tensor": i.id, "shape": list(i.shape), "static": i.static} for i in program.inputs],
        "outputs": [{"id": o.id, "label": o.label, "tensor": o.record, "shape": list(o.shape)} for o in program.outputs],
        "parameters": [
            {"label": p.label, "tensor": p.name, "shape": list(p.value.shape), "learned": p.name in learned}
            for p in program.parameters.values()
        ],
        "state_inputs": [{"label": label, "population": ref.node, "name": ref.name} for label, ref in program.state_inputs.items()],
    }
