"""Emit a step program and its plan as a folder of C++ sources, tables and weights."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Final

from jinja2 import Environment

from snnc.backends.codegen.constants import WEIGHTS, CppConstant, file_names
from snnc.backends.codegen.names import comment_text
from snnc.backends.codegen.safetensors_file import safetensors, safetensors_header
from snnc.backends.codegen.source_templates import source_of, source_templates
from snnc.backends.folders.manifest import PROJECT_FORMAT
from snnc.backends.folders.project import Chunk, atomic_folder, write_file
from snnc.backends.native.library import ABI_VERSION, SHARED_SOURCES
from snnc.backends.poplar.build import PARTS, SOURCES, TABLES
from snnc.backends.poplar.machine import machine_context
from snnc.backends.poplar.network import PoplarNetwork
from snnc.backends.poplar.parameters.norms import add_norm, norm_codelets, norm_sets
from snnc.backends.poplar.parameters.parameters import PACKED_ROWS, WEIGHT_ROWS, add_parameters
from snnc.backends.poplar.parameters.updates import clips, sum_before_updates, update_code, updates_halves
from snnc.backends.poplar.parts import Assembly, Body, class_name, connecting_function, cpp_type
from snnc.backends.poplar.schedule import add_clocks, program_values
from snnc.backends.poplar.streaming import TITLES as ROW_TITLES
from snnc.backends.poplar.streaming import add_streaming
from snnc.backends.poplar.tables import initial_values, plan_tables
from snnc.backends.poplar.vertices.backward import add_backward
from snnc.backends.poplar.vertices.counting import counts
from snnc.backends.poplar.vertices.external import SUM, SUM_TITLE, add_external, adjoint_name, only_sums
from snnc.backends.poplar.vertices.forward import add_forward
from snnc.backends.poplar.vertices.gradient_windows import REDUCE, add_gradient_windows
from snnc.backends.poplar.vertices.indexed import add_indexed, tables_before_window_test
from snnc.backends.poplar.vertices.losses import RATES, add_loss, loss_sets
from snnc.backends.poplar.vertices.recompute import RESTORE, SAVE, add_recompute
from snnc.backends.poplar.vertices.relays import JOIN, add_relays, counter_name, uses_join
from snnc.backends.poplar.vertices.statistics import MOMENTS, MOMENTS_TITLE, moments_codelets, moments_of_outputs
from snnc.backends.poplar.vertices.window_tests import add_window_test, window_test_sets, window_test_table_count
from snnc.compiler.ir.plan import Plan, PopulationPlan
from snnc.compiler.ir.plan_json import plan_to_json
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.lowering.spike_limits import limits_of, without_limits
from snnc.compiler.tiles.supersteps.streaming import ROW_BYTES
from snnc.compiler.tiles.vertices.control_vertices import (
    CLOCK_VERTEX,
    ZERO_VERTEX,
    answer,
    count_down,
    known,
    most,
    most_of_workers,
)
from snnc.compiler.tiles.vertices.cost import EVENT_SWEEP, SAMPLE_SWEEP, SUMMANDS, VALUE_SWEEP, CodeletCost
from snnc.compiler.tiles.vertices.loss_vertices import loss_scores, loss_sum, sample_loss
from snnc.compiler.tiles.vertices.parameter_vertices import pack_rows, sum_pieces, sum_private, weight_rows
from snnc.compiler.tiles.vertices.vertex_spec import VertexSpec

POPLAR: Final = (
    *(f"{part}.{kind}" for part in PARTS for kind in ("hpp", "cpp")),
    "program.hpp",
    "codelets.cpp",
    "host.cpp",
    "CMakeLists.txt",
    "README.txt",
)
"""Files of every project, except those that other targets share."""
NORMS: Final = "norms.hpp"
"""Additional file of programs that clip gradients to a norm."""
CONSTANTS: Final = (
    *file_names(TABLES),
    CppConstant(
        "std::size_t", "ROW_BYTES", ROW_BYTES, "Maximum bytes of a row of a remote buffer; longer data is split into several rows."
    ),
)
# docs/decisions/0001-poplar-program.md describes the supersteps F1, F2, B1, …
GROUPS: Final = {
    "clocks": ("add_clocks", "Iteration counters, and the test for further windows."),
    "relays_forward": (
        "add_forward_relays",
        "F1: relays search the masks for spikes. F1b: they merge the ids that their workers found into a list and write the windows.",
    ),
    "relays_backward": ("add_backward_relays", "B1: relays write the windows again."),
    "forward": ("add_forward_neurons", "F2: currents, neuron equations and spikes."),
    "backward": ("add_backward_neurons", "B1 and B2: source gradients, adjoints of the neuron equations, weight gradients."),
    "reduction": ("add_reduction", "B3, and B1 on relays: sums of the partial source gradients."),
    "loss": ("add_loss", "L1 and L2: loss of each sample, and the sum of the losses."),
    "recompute": ("add_recompute", "Save and restore states at segment boundaries."),
    "update": ("add_update", "U1 and U2: the optimiser updates the parameters on their tiles; updated rows are copied to the sources."),
    "statistics": ("add_statistics", "N1: mean and squared distances of the values of a batch normalisation."),
    "start": ("add_start", "Set currents to zero before the first step."),
}
"""Section of the program -> C++ function that adds its vertices, and the comment of this function."""


def emit_poplar(program: StepProgram, plan: Plan, folder: Path) -> Path:
    """Write the project of `program`, as mapped by `plan`, to `folder`, completely or not at all.

    Raises a PlanMismatchError, UnsupportedOnPoplarError or HalfDeltasError if program and plan do not match, or use a feature that the
    emitter does not support; an OutputFolderError or FolderInUseError if the folder cannot be written or replaced.
    """
    net = PoplarNetwork(without_limits(program), plan, limits_of(program))
    net.check()
    texts = {name: text.encode() for name, text in render(net).items()} | {"plan.json": plan_to_json(plan).encode()}
    files: dict[str, Iterable[Chunk]] = {name: (text,) for name, text in texts.items()}
    files |= {TABLES: plan_tables(net), WEIGHTS: safetensors(initial_values(net))}
    with atomic_folder(folder) as temporary:
        digests = {name: write_file(temporary / name, chunks) for name, chunks in sorted(files.items())}
        write_file(temporary / "project.json", (json.dumps(_description(net, digests), indent=1).encode(),))
    return folder


def render(net: PoplarNetwork) -> dict[str, str]:
    """Return the text files of a project by name."""
    assembly, context = assemble(net)
    own = (*POPLAR, *([NORMS] if clips(net) else []))
    names = {**{n: f"common/{n}" for n in (*SHARED_SOURCES, "constants.hpp")}, **{n: f"poplar/{n}" for n in own}}
    return print_files(net, names, context | {"codelets": assembly.codelets})


def print_files(net: PoplarNetwork, names: Mapping[str, str], context: Body) -> dict[str, str]:
    """Return the text of files by name; `names` maps each name to a path for :func:`source_of`."""
    environment = _templates(net.plan.target.instruction_bytes)
    return {name: source_of(environment, path, context) for name, path in names.items()}


@cache
def _templates(instruction_bytes: int) -> Environment:
    environment = source_templates()
    environment.filters |= {"cpp_type": cpp_type, "counts": counts, "class_name": class_name, "connecting_function": connecting_function}
    environment.filters |= {"code_bytes": partial(code_bytes, instruction_bytes)}
    return environment


def code_bytes(instruction_bytes: int, cost: CodeletCost) -> list[tuple[str, int]]:
    """Return the constants (name, value) in which a codelet states the bytes of its code."""
    loops = [(f"code_bytes_{name}", instruction_bytes * number) for name, number in cost.loops]
    return [("code_bytes", instruction_bytes * cost.instructions), *loops]


def assemble(net: PoplarNetwork) -> tuple[Assembly, Body]:
    """Return the parts of the program, and the context of its templates."""
    assembly = Assembly()
    extras = add_network(net, assembly)
    if net.mapped.external:
        extras += gradient_codelets(net)
        add_external(net, assembly)
    elif net.training:
        loss = add_loss(net, assembly)
        shape, scaled = net.mapped.loss, net.mapped.scaled
        vertex, scores = sample_loss(net.costs, shape, scaled=scaled), loss_scores(net.costs, shape)
        extras.append({"template": f"loss_{loss['title']}", "loss": loss, "vertex": vertex, "scores": scores, "scaled": scaled})
        extras.append(_printed(loss_sum(net.costs)))
        extras += gradient_codelets(net)
        extras.append(update_code(net))
        if net.mapped.extra_passes:
            sum_before_updates(net, assembly, lambda update: only_sums(update, sum_private(net.costs)))
        add_norm(net, assembly)
        extras += norm_codelets(net)
        extras += moments_codelets(net)
    programs = program_values(net, assembly, "external" if net.mapped.external else "passes" if net.mapped.extra_passes else "training")
    return assembly, {**network_context(net, assembly, programs), "extras": extras}


def add_network(net: PoplarNetwork, assembly: Assembly) -> list[Body]:
    """Add forward and backward pass; return the template data of the codelets of the window test, if there is one."""
    for store in net.stores.values():
        add_relays(net, assembly, store)
    add_parameters(net, assembly)
    add_indexed(net, assembly)
    for population in net.program.populations:
        add_forward(net, assembly, population)
        if net.training:
            add_backward(net, assembly, population)
    add_gradient_windows(net, assembly)
    add_recompute(net, assembly)
    add_streaming(net, assembly)
    add_clocks(net, assembly)
    add_window_test(net, assembly, tables_before_window_test(net))
    if net.window_test is None:
        return []
    costs = net.costs
    used = (most(costs), most_of_workers(costs), answer(costs, looks_back=net.further.known), known(costs), count_down(costs), ZERO_VERTEX)
    vertices = {vertex.name: vertex for vertex in used}
    return [{"template": "further_windows", **vertices, "words": net.window_test.words, "looks_back": net.further.known}]


def gradient_codelets(net: PoplarNetwork) -> list[Body]:
    """Return the template data of the codelets that sum gradients and copy weights to the sources of connections."""
    used = [sum_private(net.costs)]
    if net.copied_rows:
        precisions = {net.program.parameters[c.weight].half for c in net.copied_rows if c.weight is not None}
        used += [weight_rows(net.costs, half=half) for half in sorted(precisions)]
    if net.packed_rows:
        used.append(pack_rows(net.costs))
    if net.owners_sum_gradients:
        used.append(sum_pieces(net.costs))
    return [_printed(vertex) for vertex in used]


def _printed(vertex: VertexSpec) -> Body:
    return {"template": vertex.name, "vertex": vertex}


def network_context(net: PoplarNetwork, assembly: Assembly, programs: Body) -> Body:
    """Return the template context of a network and of its `programs`."""
    plan, target = net.plan, net.plan.target
    first_reduction = len(plan.populations) + len(net.stores)
    _, places = safetensors_header(initial_values(net))
    labels = {t.split('"')[1] for t in assembly.tensors if t.startswith(("tensor(", "half_parameter(", "parameter_of_blocks("))}
    return {
        "title": comment_text(net.program.name),
        "sources": SOURCES.all,
        "summary": f"{plan.steps} steps, batch {plan.batch}, for {comment_text(target.name)} ({target.chips} x {target.tiles_per_chip})",
        "plan": plan,
        "training": "true" if net.training else "false",
        "machine": machine_context(target),
        "stored": [p for p in places if p["name"] in labels],
        "tables": tables_before_window_test(net) + window_test_table_count(net) + 1,  # + 1: the table of losses
        "reductions": [{"bus": bus.id, "table": first_reduction + n} for n, bus in enumerate(net.gradient_buses)],
        "populations": [_population(p, n) for n, p in enumerate(plan.populations)],
        "stores": [{"buffer": b, "table": len(plan.populations) + n} for n, b in enumerate(net.stores)],
        "variables": list(assembly.variables.values()),
        "compute_sets": _compute_sets(net),
        "statements": [*assembly.tensors, *assembly.start, *assembly.refresh],
        "groups": [{"name": n, "title": t, "loops": assembly.loops[g]} for g, (n, t) in GROUPS.items() if g in assembly.loops],
        "programs": programs,
        "inputs": [{"id": i.id, "label": comment_text(i.label)} for i in net.program.inputs],
        "clock": CLOCK_VERTEX,
        "constants": CONSTANTS,
        "indexed": bool(net.indexed),
        "norms": NORMS if clips(net) else "",
        "half_weights": any(parameter.half for parameter in net.program.parameters.values()),
        "half_updates": net.training and updates_halves(net),
        "half_states": any(p.kernel.halves for p in net.program.populations),
        "halves": any(p.kernel.halves or (net.adjoint(p.id) is not None and p.kernel.rounded) for p in net.program.populations),
        "summands": SUMMANDS,
        "sweep": {"events": EVENT_SWEEP, "values": VALUE_SWEEP, "samples": SAMPLE_SWEEP},
    }


def _population(placed: PopulationPlan, table: int) -> Body:
    fields = {name: getattr(placed, name) for name in ("id", "label", "neurons", "stage", "replicas")}
    return fields | {"first_tile": placed.starts[0], "last_tile": placed.starts[-1] + placed.width - 1, "table": table}


def _compute_sets(net: PoplarNetwork) -> list[dict[str, str]]:
    """Return names and titles of the compute sets.

    A title begins with F (forward pass), B (backward pass), L (loss), U (update), M (streaming memory) or N (batch normalisation);
    that of the compute set before the first step does not.
    """
    names = {} if net.fused else {"relay_forward": "F1 relay"}
    names |= {JOIN: "F1b windows"} if uses_join(net) else {}
    names |= {"forward_neurons": "F2 neurons and relays" if net.fused else "F2 neurons"}
    if net.further.forward:
        names |= {**window_test_sets(net, "forward"), "forward_gather": "FG gather", "forward_next": "FN next window"}
        names["zero_currents"] = "zero currents"
    if net.plan.segment:
        names |= {**({SAVE: "FS save"} if net.plan.segments.reruns else {}), RESTORE: "FR restore"}
    if net.plan.segments.rows:
        names |= ROW_TITLES
    if net.mapped.computes_statistics:
        names |= {MOMENTS: MOMENTS_TITLE}
    if net.training:
        if not net.mapped.external:
            titles = {"loss_scores": "L1 scores", "loss_samples": "L1 loss"}
            names |= {**{name: titles[name] for name in loss_sets(net)}, "loss_sum": "L2 loss"}
        names |= {"relay_backward": "B1 relay and source gradients", "backward_neurons": "B2 neurons"}
        names |= {"sum_private_gradients": "U1 private gradients", **norm_sets(net)}
        names |= {SUM: SUM_TITLE} if net.mapped.external or net.mapped.extra_passes else {}
        names |= {RATES: "U1 rates"} if net.mapped.extra_passes else {}
        names |= {} if net.mapped.external else {"update_parameters": "U1 update"}
        if net.owners_sum_gradients:
            names |= {"sum_shared_gradients": "U1 shared gradients"}
        if net.copied_rows:
            names |= {**({PACKED_ROWS: "U2 rows packed"} if net.packed_rows else {}), WEIGHT_ROWS: "U2 weights to sources"}
    if net.gradient_buses:
        names |= {REDUCE: "B3 reduction"}
    if net.further.backward:
        names |= {**window_test_sets(net, "backward"), "backward_next": "BN next window", "backward_rounds": "BG gather"}
    return [{"name": name, "title": title} for name, title in names.items()]


def _description(net: PoplarNetwork, digests: dict[str, str]) -> Body:
    program, plan, moments = net.program, net.plan, moments_of_outputs(net)
    return {
        "format": PROJECT_FORMAT,
        "abi": ABI_VERSION,
        "kind": "poplar",
        "name": program.name,
        "target": plan.target.name,
        "steps": plan.steps,
        "batch": plan.batch,
        "training": net.training,
        "inputs": [
            {
                "label": i.label,
                "tensor": i.id,
                "shape": list(i.shape),
                "static": i.repeated,
                "used": any(s.owner == i.id for s in net.stores.values()),
            }
            for i in program.inputs
        ],
        "outputs": [
            {
                "id": o.id,
                "label": o.label,
                "tensor": o.record,
                "shape": list(o.shape),
                "source": o.source.buffer,
                "delay": o.source.delay,
                "input": next((i.id for i in program.inputs if o.source.buffer.startswith(f"{i.id}_")), None),
            }
            for o in program.outputs
            if o.id not in {about["id"] for about in moments}
        ],
        **({"moments": moments} if moments else {}),
        "parameters": [
            {"label": p.label, "tensor": p.name, "shape": list(p.value.shape), "learned": p.name in {u.parameter for u in program.update}}
            for p in program.parameters.values()
        ],
        **({"adjoint": adjoint_name(net)} if net.mapped.external else {}),
        "state_inputs": [{"label": label, "population": ref.node, "name": ref.name} for label, ref in program.state_inputs.items()],
        "counters": {b.id: {"tensor": counter_name(net, b), "source": b.buffer} for b in plan.buses if b.capacity < b.width}
        | {name: {"tensor": f"{name}_dropped", "source": name} for name, store in net.stores.items() if store.drops_spikes},
        "files": digests,
    }
