"""The data that the templates of a CPU project are rendered with: members and statements of the C++ class ``Network``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from snnc.backends.codegen.names import comment_text
from snnc.backends.codegen.printing import Guarded, Statement
from snnc.backends.codegen.updates import group_numbers
from snnc.backends.cpu.collapse import add_collapsed, add_collapsed_adjoint, collapsed
from snnc.backends.cpu.needs import needs_of
from snnc.backends.cpu.neurons import SHORT, Function, backward_function, forward_function
from snnc.backends.cpu.operations import BlockStatement, Statements
from snnc.backends.cpu.stages import Stages, stages_of
from snnc.backends.native.composed_loss import target_setup
from snnc.backends.native.memory import Needs
from snnc.backends.native.project_files import Context, program_context
from snnc.backends.native.row_buffers import ONE, RowBuffer, Slots
from snnc.backends.native.storage import SequenceStorage
from snnc.backends.native.tables import Table
from snnc.compiler.ir.graph import Array
from snnc.compiler.ir.step_operations import DenseInputGradient, InputGradient, NeuronAdjoint, NeuronStep
from snnc.compiler.ir.step_program import Parameter, StepProgram
from snnc.compiler.losses import CrossEntropyCount, CrossEntropyMeanMembrane, MeanSquaredCount
from snnc.compiler.losses.external import ExternalLoss
from snnc.compiler.losses.update_rules import moments
from snnc.compiler.losses.weight_rounding import parameter_key
from snnc.compiler.lowering.spike_limits import limited_sources


def network_context(storage: SequenceStorage, values: Mapping[str, Array], sizes: Mapping[str, int]) -> tuple[Context, list[Table], Needs]:
    """Return the template data, the tables of connections, and the memory needs of a session."""
    program = storage.program
    trains = program.optimizer is not None
    readout = collapsed(storage)  # the readout, if training computes it as a single product; else None
    stages = stages_of(storage, lambda op: readout is not None and readout.contains(op))
    statements = Statements(storage, trains, stages)
    of_stages = [_StageStatements() for _ in range(stages.count)]
    for op in program.forward:
        statements.add(op)
        of_stages[stages.of(op)].add_forward(statements, "recording" if readout is not None and readout.contains(op) else None)
    if readout is not None:
        statements.setup.append("records_training = false;")
        add_collapsed(readout, statements)
    for adjoint in program.backward if trains else ():
        if readout is not None and readout.contains(adjoint):
            add_collapsed_adjoint(readout, adjoint, statements)
            # A gradient that the readout returns to a population is added in that population's stage.
            receiver = stages.owner[adjoint.source.buffer] if isinstance(adjoint, DenseInputGradient) else None
            of_stages[stages.of(adjoint) if receiver is None else stages.level[receiver]].add_backward(statements)
        else:
            statements.add(adjoint)
            of_stages[stages.of(adjoint)].add_backward(statements)
    record = next((o.record for o in program.outputs if o.id == program.loss_output), None)
    row_buffers = [*_row_buffers(storage, stages, trains), *statements.row_buffers]
    context: Context = {
        **program_context(program, values, sizes),
        "functions": functions(storage, trains),
        "float16": storage.precision == "float16",  # whether histories are rounded to float16
        "half_weights": any(p.half for p in program.parameters.values()),
        "members": _members(statements),
        "setup": [*_setup(storage, trains), *statements.setup],
        "layout": [
            *(["block = block_length();"] if trains or stages.forward else []),
            *(h.statement(trains) for h in row_buffers),
            *statements.layout,
        ],
        "rounded": statements.rounded,
        "prepare": statements.prepare,
        "enter": statements.enter,
        "stages": of_stages,
        "in_blocks": bool(stages.forward),
        "gradients": statements.gradients,
        "shared": list(statements.shared.values()),
        "cleared": [{"adjoint": n, "slots": slots} for n, slots in _adjoint_slots(storage, stages, trains).items()],
        "start": statements.start,
        "cut": {"steps": program.truncate, "clears": _cut(storage)} if trains and program.truncate else None,
        "finish": statements.finish,
        "update": _updates(program),
        "updated": [u.parameter for u in program.update],
        "tables": len(statements.tables),
        "readout": statements.readout,
        "scored": {"rows": record, "adjoint": f"d_{record}", "steps": "steps"} | statements.scored,
    }
    return context, statements.tables, needs_of(statements, row_buffers)


def _updates(program: StepProgram) -> list[str]:
    optimizer = program.optimizer
    scale = ", clip_scale" if optimizer is not None and optimizer.clip_norm is not None else ""
    scale += ", gradient_scale" if optimizer is not None and optimizer.loss_scale is not None else ""
    lines = []
    for name, group in group_numbers(program).items():
        part = f"part({name}.numbers, worker, workers)"
        changed = f"change({name}, {part}, by.group[{group}]{scale});"
        lines += _rounded_update(program, name, part, changed) if program.parameters[name].half else [changed]
    return lines


def _rounded_update(program: StepProgram, name: str, part: str, changed: str) -> list[str]:
    assert program.rounding is not None, "float16 weights that are updated have a rounding"
    match program.rounding.kind:
        case "nearest":
            return [changed, f"round_to_nearest({name}, {part});"]
        case "master":
            return [f"make_exact({name}, {part});", changed, f"round_keeping_remainder({name}, {part});"]
        case "stochastic":
            connection = next(c for c in program.connections if c.weight == name)
            number = [op.parameter for op in program.update].index(name)
            key = parameter_key(program.rounding.seed, number)
            panels = f"{connection.id}.panels, " if connection.kind == "dense" else ""
            return [changed, f"round_at_random({name}, {part}, {panels}{key}u, updates);"]


def _rounding_setup(program: StepProgram, name: str, shape: str) -> list[str]:
    """Return statements that prepare the rounding of a weight: memory for remainders, or positions, from which random numbers follow."""
    kind = None if program.rounding is None else program.rounding.kind
    if kind == "stochastic" and any(c.weight == name and c.kind == "convolution" for c in program.connections):
        return [f"{name}.places = places_of({name});"]
    return [f"add_remainder({name}, {shape});"] if kind == "master" else []


@dataclass
class _StageStatements:
    """Statements of a stage: before a block of forward steps, in each step of a pass, and after a block of backward steps."""

    before: list[BlockStatement] = field(default_factory=list)
    forward: list[Statement] = field(default_factory=list)
    backward: list[Statement] = field(default_factory=list)
    after: list[str] = field(default_factory=list)

    def add_forward(self, statements: Statements, condition: str | None) -> None:
        """Move the new forward statements to this stage, under a condition if one is given."""
        assert condition is None or not statements.before_block, "a readout that runs only while it is recorded has no block products"
        self.before += statements.before_block
        self.forward += statements.forward if condition is None else [Guarded(condition, line) for line in statements.forward]
        statements.before_block, statements.forward = [], []

    def add_backward(self, statements: Statements) -> None:
        self.backward += statements.backward
        self.after += statements.after_block
        statements.backward, statements.after_block = [], []


def _cut(storage: SequenceStorage) -> list[str]:
    """Return the statements that clear the adjoints passed to earlier steps, for truncated backpropagation."""
    states = [state for op in storage.program.backward if isinstance(op, NeuronAdjoint) for state in op.states]
    slots = [(n, k) for n, slots in storage.adjoint_slots.items() for k in range(slots)]
    return [f"d_{s}.clear(w, 0);" for s in states] + [f"d_{n}.clear(w, {k});" for n, k in slots]


def functions(storage: SequenceStorage, trains: bool) -> list[Function]:
    """Return the functions of all populations; `near` are outputs of which they store flags: which neurons receive a gradient."""
    program, printed = storage.program, []
    adjoints = {op.population for op in program.backward if isinstance(op, NeuronAdjoint)}
    for op in program.forward:
        if isinstance(op, NeuronStep):
            info = program.population(op.population)
            size = math.prod(info.shape)
            scalars = {a: program.buffers[n].shape == () for a, n in zip(info.kernel.parameters, op.parameters, strict=True)}
            near = [o for o, n in zip(info.kernel.outputs, op.outputs, strict=True) if trains and n in storage.outputs_with_support]
            rounded, numbers = storage.rounded[info.id], SHORT[storage.precision]
            printed.append(forward_function(info, size, scalars, near, rounded, numbers))
            if trains and info.id in adjoints:
                printed.append(backward_function(info, size, scalars, rounded, numbers))
    return printed


def _adjoint_slots(storage: SequenceStorage, stages: Stages, trains: bool) -> dict[str, Slots]:
    """Return the number of stored rows of each output's adjoint: the longest delay plus 1, or plus a block if a later stage writes it."""
    reads = [op for op in storage.program.backward if isinstance(op, InputGradient)]
    from_later = {op.source.buffer for op in reads if stages.of(op) > stages.level.get(stages.owner.get(op.source.buffer, ""), 0)}
    stored = storage.adjoint_slots.items() if trains else ()
    return {name: Slots(slots - 1, ("block",)) if name in from_later else Slots(slots) for name, slots in stored}


def _members(statements: Statements) -> list[dict[str, Any]]:
    storage, trains = statements.storage, statements.trains
    program = storage.program
    filled = statements.stages.filled(program)  # currents with a row for each step of a block
    parameters = program.parameters.values()
    lines = [f"Parameter {p.name} = {_parameter_expression(program, p)}; // {comment_text(p.label)}" for p in parameters]
    groups: list[dict[str, Any]] = [{"comment": "Connections.", "lines": statements.members}, {"comment": "Parameters.", "lines": lines}]
    for i in program.inputs:
        name = f"{i.id}_in"
        lines = [f"Source {name}{{{storage.size(name)}, {storage.stored(name).past}}};"]
        groups.append({"comment": f"Input {comment_text(i.label)}.", "lines": lines})
    adjoints = {op.population: op for op in program.backward if isinstance(op, NeuronAdjoint)} if trains else {}
    for op in program.forward:
        if isinstance(op, NeuronStep):
            info, rounded = program.population(op.population), storage.rounded[op.population]
            lines = [f"Rows {n}{{{storage.size(n)}, 0}};" for n in op.currents] + [f"Rows {n}{{{storage.size(n)}, 1}};" for n in op.states]
            lines += [f"Source {n}{{{storage.size(n)}, {storage.stored(n).past}}};" for n in op.outputs]
            lines += [f"Source {n}_near{{{storage.size(n)}, 0}};" for n in op.outputs if trains and n in storage.outputs_with_support]
            saved = dict(zip(info.kernel.saved, op.saved, strict=True))
            lines += [f"{'History' if k in rounded else 'Rows'} {n}{{{storage.size(n)}, 0}};" for k, n in saved.items()]
            states = zip(info.kernel.states, op.states, strict=True)
            lines += [f"History {n}_history{{{storage.size(n)}, 1}};" for s, n in states if s in rounded]
            if op.population in adjoints:
                # In a block, the adjoints of these currents overwrite the currents, which have been read by then.
                lines += [f"Rows &d_{n} = {n};" for n in op.currents if n in filled]
                others = (n for n in (*op.currents, *op.states, *op.outputs) if n not in filled)
                lines += [f"Rows d_{n}{{{storage.size(n)}, 0}};" for n in others]
            groups.append({"comment": f"Population {comment_text(info.label)}.", "lines": lines})
    for o in program.outputs:
        lines = [f"Rows {o.record}{{{storage.size(o.record)}, 0}};"]
        if trains and o.id == program.loss_output:
            lines.append(f"Rows d_{o.record}{{{storage.size(o.record)}, 0}};")
        groups.append({"comment": f"Output {comment_text(o.label)}.", "lines": lines})
    return groups


def _parameter_expression(program: StepProgram, parameter: Parameter) -> str:
    name = parameter.name
    match [(c.id, c.kind) for c in program.connections if c.weight == name]:
        case [(id_, "dense")]:
            return f'dense("{name}", {id_}.panels)'
        case [(id_, "convolution")]:
            return f'{id_}.weight("{name}")'
    return f'plain("{name}", {parameter.value.size})'


def _setup(storage: SequenceStorage, trains: bool) -> list[str]:
    program = storage.program
    learned = {u.parameter for u in program.update} if trains else set()
    number, limits = len(moments(program.optimizer)), limited_sources(program)
    lines = []
    for p in program.parameters.values():
        shape = "{" + ", ".join(map(str, p.value.shape or (1,))) + "}"
        lines.append(f"add_learned({p.name}, {shape}, {number});" if p.name in learned else f"add_parameter({p.name}, {shape});")
        if p.half:
            lines.append(f"{p.name}.settled = [](Parameter &weight) {{ round_to_nearest(weight, {{0, weight.numbers}}); }};")
        if p.half and p.name in learned and program.rounding is not None:
            lines += _rounding_setup(program, p.name, shape)
    for i in program.inputs:
        name = f"{i.id}_in"
        stored, spikes = storage.stored(name), program.buffers[name].kind == "spikes"
        readers = ", ".join("true" if b else "false" for b in (spikes, stored.rows, stored.listed or not spikes))
        lines.append(f'add_input("{i.id}", {name}, {readers});')
    delayed = {buffer for p in program.populations for buffer in p.output_buffers.values()}
    for op in program.forward:
        if isinstance(op, NeuronStep):
            lines += [f'add_state("{s}_initial", {s});' for s in op.states]
            for o in op.outputs:
                name = f'"{o}_initial"' if o in delayed and storage.stored(o).past else "nullptr"
                lines.append(f'add_source("{o}", {name}, {o});')
                if storage.stored(o).listed:
                    lines.append(f"{o}.listed = true;")
                if trains and o in storage.outputs_with_support:
                    lines += [f'add_source("{o}_near", nullptr, {o}_near);', f"{o}_near.listed = true;"]
                    lines += [f"{o}_near.only_listed = true;"] if o in limits else []
    lines += [f"limit_spikes({limit.buffer}, {limit.capacity}, {limit.key});" for limit in limits.values()]
    lines += [f'add_record("{o.record}", {o.record});' for o in program.outputs]
    if trains:
        record = next(o.record for o in program.outputs if o.id == program.loss_output)
        lines.append(target_setup(program.loss, storage.size(record)))
        if isinstance(program.loss, ExternalLoss):
            lines.append(f'add_adjoint("d_{record}", d_{record}, true);')
    return lines


def _row_buffers(storage: SequenceStorage, stages: Stages, trains: bool) -> list[RowBuffer]:
    program, buffers = storage.program, []
    filled, adjoint_slots = stages.filled(program), _adjoint_slots(storage, stages, trains)
    adjoints = {op.population for op in program.backward if isinstance(op, NeuronAdjoint)} if trains else set()
    past, block, every = Slots(1, ("segment",)), Slots(0, ("block",)), Slots(0, ("steps",))
    for op in program.forward:
        if not isinstance(op, NeuronStep):
            continue
        kernel = program.population(op.population).kernel
        for n in op.currents:
            rows = block if n in filled else ONE
            buffers.append(RowBuffer(n, storage.size(n), rows, rows))
        for state, n in zip(kernel.states, op.states, strict=True):
            in_history = trains and state in kernel.history and op.population in adjoints
            rounded = state in storage.rounded[op.population]
            buffers.append(RowBuffer(n, storage.size(n), past if in_history and not rounded else ONE, ONE))
            buffers += [RowBuffer(f"{n}_history", storage.size(n), past, ONE, 2)] if rounded else []
        for n in op.outputs:
            stored = storage.stored(n)
            buffers.append(RowBuffer(f"{n}.rows", storage.size(n), stored.slots(trains), stored.slots(False)))
        near = [n for n in op.outputs if trains and n in storage.outputs_with_support]
        buffers += [RowBuffer(f"{n}_near.rows", storage.size(n), ONE, ONE) for n in near]
        for name, n in zip(kernel.saved, op.saved, strict=True):
            width = 2 if name in storage.rounded[op.population] else 4
            buffers.append(RowBuffer(n, storage.size(n), Slots(0, ("segment",)) if trains else ONE, ONE, width))
        if op.population in adjoints:
            buffers += [RowBuffer(f"d_{n}", storage.size(n), block, None) for n in op.currents if n not in filled]
            buffers += [RowBuffer(f"d_{n}", storage.size(n), ONE, None) for n in op.states]
            buffers += [RowBuffer(f"d_{n}", storage.size(n), adjoint_slots[n], None) for n in op.outputs]
    for o in program.outputs:
        buffers.append(RowBuffer(o.record, storage.size(o.record), every, every))
        if trains and o.id == program.loss_output:
            # The adjoint of these losses (``loss.hpp``) is the same at all steps, so only one row of it is stored.
            varies = not isinstance(program.loss, CrossEntropyCount | CrossEntropyMeanMembrane | MeanSquaredCount | None)
            buffers.append(RowBuffer(f"d_{o.record}", storage.size(o.record), every if varies else ONE, ONE))
    return buffers
