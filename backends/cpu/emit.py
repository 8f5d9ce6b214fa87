"""StepProgram to a folder of C++ sources, tables and weights for a processor."""

from __future__ import annotations

import importlib.resources
import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import jinja2
import numpy as np

from snnc.backends.cpu.build import EQUATION_FLAGS, FLAGS, LEVEL, SOURCES
from snnc.backends.cpu.network import network_context
from snnc.backends.cpu.pooled import with_pooled_convolutions
from snnc.backends.cpu.storage import Storage
from snnc.backends.cpu.tables import table_file
from snnc.backends.moments import moments
from snnc.backends.names import c_string, comment_text
from snnc.backends.native import ABI_VERSION, PROJECT_FORMAT, SHARED_SOURCES
from snnc.backends.project import Chunk, whole_folder, write_file
from snnc.backends.safetensors_file import safetensors
from snnc.compiler.graph import Array
from snnc.compiler.plan import Precision
from snnc.compiler.step_operations import ConvolveInputGradient, Dense, DenseInputGradient
from snnc.compiler.step_program import StepProgram

FIXED: Final = (
    "bfloat16.hpp",
    "vectors.hpp",
    "threads.hpp",
    "values.hpp",
    "values.cpp",
    "products.hpp",
    "products.cpp",
    "parameters.hpp",
    "dense.hpp",
    "dense.cpp",
    "wiring.hpp",
    "wiring.cpp",
    "maximum.hpp",
    "maximum.cpp",
    "windows.hpp",
    "windows.cpp",
    "convolution.hpp",
    "convolution.cpp",
    "readout.hpp",
    "readout.cpp",
    "cpu_session.hpp",
    "cpu_session.cpp",
    "math.hpp",
)
"""Sources that are the same in every project: they are compiled once."""
OWN: Final = ("network.cpp", "neurons.hpp", "neurons.cpp", "CMakeLists.txt", "README.txt")
USUAL_STEPS: Final = 100
USUAL_BATCH: Final = 32
"""What a session starts with where nobody said; it takes any other."""


def emit_cpu(
    program: StepProgram, folder: Path, steps: int | None = None, batch: int | None = None, precision: Precision = "float32"
) -> Path:
    """Write the project of `program` to `folder`, whole or not at all.

    Parameters
    ----------
    program
        What to emit.
    folder
        Where.
    steps, batch
        What a session starts with; it takes any number of either.
    precision
        Of what the backward pass reads of all steps, and of dense weights as connections read them; sums are float32.

    Raises
    ------
    ProjectFolderError
        The folder cannot be written.
    """
    program, pooled = with_pooled_convolutions(program)
    storage = Storage(program, pooled, precision)
    values = initial_values(program, storage)
    sizes = {"steps": steps or program.steps or USUAL_STEPS, "batch": batch or USUAL_BATCH}
    context, tables = network_context(storage, values, sizes)
    files: dict[str, Iterable[Chunk]] = {name: (text.encode(),) for name, text in render(context).items()}
    files |= {"tables.bin": table_file(tables), "weights.safetensors": safetensors(values)}
    with whole_folder(folder) as beside:
        digests = {name: write_file(beside / name, chunks) for name, chunks in sorted(files.items())}
        write_file(beside / "project.json", (json.dumps(project_description(storage, sizes, digests, "cpu"), indent=1).encode(),))
    return folder


def render(context: dict[str, Any]) -> dict[str, str]:
    """Return all text files by name."""
    whole = context | {"flags": (LEVEL, *FLAGS), "equation_flags": EQUATION_FLAGS, "sources": SOURCES}
    return rendered(whole, "cpu", (*FIXED, *OWN))


def rendered(context: dict[str, Any], target: str, names: Iterable[str]) -> dict[str, str]:
    """Return the text files of a target without a plan: those called `names`, those of the ABI, the loss and the optimizer."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(str(importlib.resources.files("snnc.templates"))),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
        keep_trailing_newline=True,
    )
    environment.filters |= {"comment": comment_text, "c_string": c_string}
    paths = {**{n: f"common/{n}" for n in SHARED_SOURCES}, **{n: f"{target}/{n}" for n in names}}
    if context["training"]:
        paths |= {"cross_entropy.hpp": f"{target}/cross_entropy.hpp", "loss.hpp": f"{target}/loss_{context['loss']['name']}.hpp"}
        paths |= {"optimizer.hpp": f"{target}/optimizer_{context['optimizer']['name']}.hpp"}
    return {name: environment.get_template(f"{path}.jinja").render(context) for name, path in paths.items()}


def initial_values(program: StepProgram, storage: Storage) -> dict[str, Array]:
    """Parameters, initial states of a sample, and the learning rate, by their ABI names."""
    found: dict[str, Array] = {name: np.atleast_1d(p.value) for name, p in program.parameters.items()}
    for population in program.populations:
        for state, value in zip(population.kernel.states, population.initial, strict=True):
            name = f"{population.id}_{state}"
            found[f"{name}_initial"] = np.broadcast_to(np.asarray(value, dtype=np.float32).reshape(-1), (storage.size(name),))
    if program.optimizer is not None:
        found["lr"] = np.array([program.optimizer.lr], dtype=np.float32)
    return found


def _fixed_bytes(storage: Storage) -> int:
    """Bytes of parameters, their moments, one gradient each, and the copies that the passes read."""
    program = storage.program
    learned = {u.parameter for u in program.update}
    copies = {op.weight: 4 for op in program.backward if isinstance(op, DenseInputGradient | ConvolveInputGradient)}
    if storage.precision == "bfloat16":
        packed = {op.weight for op in program.backward if isinstance(op, DenseInputGradient)}
        copies |= {op.weight: 2 + 2 * (op.weight in packed) for op in program.forward if isinstance(op, Dense)}
    return sum(
        p.value.size * (4 * (1 + (name in learned) * (1 + len(moments(program.optimizer)))) + copies.get(name, 0))
        for name, p in program.parameters.items()
    )


def project_description(storage: Storage, sizes: dict[str, int], digests: dict[str, str], target: str) -> dict[str, Any]:
    """``project.json`` of a target without a plan: what the folder is, and which ABI tensor stands for what."""
    program = storage.program
    return {
        "format": PROJECT_FORMAT,
        "abi": ABI_VERSION,
        "kind": target,
        "name": program.name,
        "target": target,
        **sizes,
        "fixed_steps": program.steps,
        "bytes_per_step": storage.bytes_per_step(),
        "memory": {
            "fixed": _fixed_bytes(storage),
            "history": storage.history_bytes,
            "checkpoint": storage.checkpoint_bytes,
            "listed": storage.listed_neurons,
            "record": 4 * sum(math.prod(o.shape) for o in program.outputs),
        },
        "training": program.optimizer is not None,
        "inputs": [{"label": i.label, "tensor": i.id, "shape": list(i.shape), "static": i.static} for i in program.inputs],
        "outputs": [{"id": o.id, "label": o.label, "tensor": o.record, "shape": list(o.shape)} for o in program.outputs],
        "parameters": [
            {"label": p.label, "tensor": p.name, "shape": list(p.value.shape), "learned": p.name in {u.parameter for u in program.update}}
            for p in program.parameters.values()
        ],
        "state_inputs": [{"label": label, "population": ref.node, "name": ref.name} for label, ref in program.state_inputs.items()],
        "files": digests,
    }
