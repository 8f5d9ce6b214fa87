"""Everything that the templates of a CUDA project print of a network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from snnc.backends.cpu.adjoint import GivenAdjoint
from snnc.backends.cpu.network import loss_context, optimizer_context
from snnc.backends.cpu.storage import Storage
from snnc.backends.cuda.gradients import Gradients
from snnc.backends.cuda.steps import Steps
from snnc.backends.cuda.tables import Table
from snnc.backends.cuda.wavefront import wavefront
from snnc.backends.moments import moments
from snnc.backends.names import comment_text
from snnc.backends.safetensors_file import safetensors_header
from snnc.compiler.graph import Array
from snnc.compiler.plan import Precision
from snnc.compiler.step_operations import Dense, DenseInputGradient, InputGradient, NeuronAdjoint, NeuronStep
from snnc.compiler.step_program import StepProgram

Context = dict[str, Any]
Group = dict[str, Any]
Row = tuple[str, int, bool, str]
"""A buffer: name, steps before the first, whether bits, slots in C++."""


def network_context(
    storage: Storage, values: Mapping[str, Array], sizes: Mapping[str, int], precision: Precision = "float32"
) -> tuple[Context, list[Table]]:
    """Return what the templates take, and the tables of connections."""
    program = storage.program
    trains = program.optimizer is not None
    steps = Steps(storage, precision)
    forward = steps.forward()
    backward = steps.backward() if trains else []
    gradients = Gradients(steps)
    if trains:
        gradients.add_all()
    record = next((o.record for o in program.outputs if o.id == program.loss_output), None)
    buffers = Buffers(storage, gradients, trains)
    learned = [u.parameter for u in program.update] if trains else []
    turns = wavefront([p.name for p in forward], steps.edges())
    context: Context = {
        "title": comment_text(program.name),
        **sizes,
        "trainable": "true" if trains else "false",
        "training": trains,
        "stored": safetensors_header(values)[1],
        "forward_phases": forward,
        "sizes": {phase.name: phase.size for phase in forward},
        "backward_phases": backward,
        "record_phases": steps.records(),
        "forward_turns": turns,
        "backward_turns": wavefront([p.name for p in backward], [(after, before, delay) for before, after, delay in steps.edges()]),
        "forward_sums": max((len(op.currents) for op in program.forward if isinstance(op, NeuronStep)), default=1) or 1,
        "backward_sums": max((len(op.outputs) for op in program.backward if isinstance(op, NeuronAdjoint)), default=1) or 1,
        "fields": [
            *buffers.fields(),
            {"comment": "Parameters.", "lines": _pointers(steps, learned)},
            _group("Connections.", steps.bound.fields),
        ],
        "members": [*buffers.members(), _group("Parameters.", _parameters(program))],
        "setup": [*_setup(storage, buffers, learned), *steps.bound.setup],
        "layout": [*buffers.layout(record), *_copies_layout(steps), *gradients.layout],
        "binding": [*buffers.binding(), *_parameter_binding(steps, learned), *steps.bound.binding],
        "turns": gradients.turns,
        "gradients": gradients.lines,
        "copies": [
            *(f"turn_weights(net.{w}, {i}, {o}, net.{w}_back);" for w, (i, o) in steps.bound.turned.items()),
            *(f"round_weights(net.{w}, {i}, {o}, net.{w}_half);" for w, (i, o) in steps.bound.rounded.items()),
        ],
        "start": buffers.start(),
        "updates": [{"learned": f"{p}_learned", "numbers": max(1, program.parameters[p].value.size)} for p in learned],
        "tables": len(steps.tables.tables),
        "record": record,
        "classes": storage.size(record) if record is not None else 0,
        "loss": loss_context(program.loss),
        "optimizer": optimizer_context(program.optimizer),
        "bytes_per_step": buffers.bytes_per_step(),
        "memory": buffers.memory(),
        "work": _work(steps) | {"levels": len(turns.stretches)},
        "inputs": [{"id": i.id, "label": comment_text(i.label)} for i in program.inputs],
    }
    return context, steps.tables.tables


class Buffers:
    """The sequence buffers of a program: what kernels see, what the session holds, and how large they are."""

    def __init__(self, storage: Storage, gradients: Gradients, trains: bool) -> None:
        self.storage = storage
        self.program = storage.program
        self.gradients = gradients
        self.trains = trains
        self.adjoints = {op.population: op for op in self.program.backward if isinstance(op, NeuronAdjoint)} if trains else {}

    def groups(self) -> list[tuple[str, list[Row]]]:
        """Comment, then name, steps before the first, whether bits, and slots in C++, of every buffer.

        Where slots are counted in ``kept``, they are those of a segment; in ``steps``, those of the whole sequence.
        """
        program, found = self.program, []
        for i in program.inputs:
            found.append((f"Input {comment_text(i.label)}.", [self._source(f"{i.id}_in", "")]))
        for op in program.forward:
            if isinstance(op, NeuronStep):
                found.append(self._population(op))
        for o in program.outputs:
            rows: list[Row] = [(o.record, 0, False, "steps")]
            if self.trains and o.id == program.loss_output:
                rows.append((f"d_{o.record}", 0, False, "training ? adjoint_slots(steps) : 1"))
            found.append((f"Output {comment_text(o.label)}.", rows))
        return found

    def _population(self, op: NeuronStep) -> tuple[str, list[Row]]:
        info = next(p for p in self.program.populations if p.id == op.population)
        adjoint = self.adjoints.get(op.population)
        rows: list[Row] = []
        for state, n in zip(info.kernel.states, op.states, strict=True):
            kept = adjoint is not None and state in info.kernel.history
            rows.append((n, 1, False, "training ? kept + 1 : 1" if kept else "1"))
        for n in op.outputs:
            spikes = self.program.buffers[n].kind == "spikes"
            rows.append(self._source(n, f"{'steps' if spikes else 'kept'} + {self.storage.kept(n).past}"))
        rows += [(n, 0, False, "training ? kept : 1" if self.trains else "1") for n in op.saved]
        if adjoint is not None:
            for n in op.currents:
                shown = info.label in self.relays
                rows.append((f"d_{n}", 0, False, f"training ? {'steps' if shown else f'kept + {self.ahead(n)}'} : 1"))
            rows += [(f"d_{n}", 0, False, "1") for n in op.states]
            rows += [(f"{g}_sums", 0, False, "1") for g in adjoint.gradients]
        return f"Population {comment_text(info.label)}.", rows

    @property
    def relays(self) -> tuple[str, ...]:
        """Populations whose currents' adjoints are shown at every step."""
        return self.program.loss.relays if isinstance(self.program.loss, GivenAdjoint) else ()

    def ahead(self, current: str) -> int:
        """Steps of the segment behind whose deltas are read: the longest delay of what comes back from `current`."""
        reading = [op for op in self.program.backward if isinstance(op, InputGradient) and op.target == current]
        return max((op.source.delay for op in reading), default=0)

    def deltas(self) -> list[tuple[str, int]]:
        """Deltas that another segment reads, and how many steps of them."""
        found = [(f"d_{n}", self.ahead(n)) for op in self.steps_back() for n in op.currents]
        shown = {f"d_{n}" for n in self.shown().values()}
        return [(name, ahead) for name, ahead in found if ahead and name not in shown]

    def shown(self) -> dict[str, str]:
        """Population of a relay to its current."""
        labels = {p.id: p.label for p in self.program.populations}
        return {op.population: op.currents[0] for op in self.steps_back() if labels[op.population] in self.relays}

    def steps_back(self) -> list[NeuronStep]:
        """Forward steps of the populations that have an adjoint."""
        return [op for op in self.program.forward if isinstance(op, NeuronStep) and op.population in self.adjoints]

    def _source(self, name: str, slots: str) -> Row:
        return name, self.storage.kept(name).past, self.program.buffers[name].kind == "spikes", slots

    def fields(self) -> list[Group]:
        """Members of ``Net``."""
        found = []
        for comment, rows in self.groups():
            lines = [f"{'Bits' if bits else 'Rows'}<{self._size(name)}, {past}> {name};" for name, past, bits, _ in rows]
            lines += [f"Turned {name}_turned;" for name, *_ in rows if name in self.gradients.turned]
            found.append(_group(comment, lines))
        return found

    def members(self) -> list[Group]:
        """Members of the session."""
        found = []
        for comment, rows in self.groups():
            lines = [
                f"Held {name}{{{self._size(name)}, {past}, {'true' if bits else 'false'}, {'true' if _whole(slots) else 'false'}}};"
                for name, past, bits, slots in rows
            ]
            lines += [f"device::Array<std::uint32_t> {name}_turned;" for name, *_ in rows if name in self.gradients.turned]
            found.append(_group(comment, lines))
        return found

    def layout(self, record: str | None) -> list[str]:
        """Statements that give buffers their sizes; those of inputs follow what is set."""
        lines = [f"{name}.resize({slots}, batch);" for _, rows in self.groups() for name, _, _, slots in rows if slots]
        for name in self.gradients.turned:
            words = f"((rows + static_cast<std::size_t>({self.storage.kept(name).past} * batch)) + 31) / 32"
            lines.append(f"{name}_turned.resize({self._size(name)} * ({words}));")
        if self.trains and record is not None:
            lines.append(f"scores.resize(static_cast<std::size_t>(loss_rows(steps, batch)) * {self._size(record)});")
        return lines

    def binding(self) -> list[str]:
        """Statements that tell kernels where buffers are."""
        lines = [f"{name}.view(net.{name}, first);" for _, rows in self.groups() for name, *_ in rows]
        for name in self.gradients.turned:
            words = f"((length + {self.storage.kept(name).past}) * batch + 31) / 32"
            lines.append(f"net.{name}_turned = {{{name}_turned.data(), {words}}};")
        return lines

    def bytes_per_step(self) -> int:
        """Bytes that a sequence takes for each step and sample, what has one slot aside."""
        every = [(name, bits, slots) for _, rows in self.groups() for name, _, bits, slots in rows]
        kept = [(self._size(name), bits) for name, bits, slots in every if not slots or "steps" in slots or "kept" in slots]
        turned = sum(self._size(name) for name in self.gradients.turned)
        staged = max((self.storage.size(f"{i.id}_in") for i in self.program.inputs), default=0)
        return sum(4 * (-(-size // 32) if bits else size) for size, bits in kept) + -(-turned // 8) + 4 * staged

    def memory(self) -> dict[str, int]:
        """Bytes of a step and sample that a segment keeps, of a checkpoint of a sample, and of a step and sample for the whole sequence."""
        rows = [(self._size(name), past, bits, slots) for _, rows in self.groups() for name, past, bits, slots in rows]
        history = sum(4 * size for size, _, _, slots in rows if "kept" in slots)
        history += sum(-(-self.storage.size(name) // 8) for name in self.gradients.turned)
        begun = {n for op in self.program.forward if isinstance(op, NeuronStep) for n in (*op.states, *op.outputs)}
        named = [(name, past, slots) for _, some in self.groups() for name, past, _, slots in some if name in begun]
        checkpoint = sum(4 * self._size(name) * (past if "kept" in slots else 1) for name, past, slots in named if not _whole(slots))
        whole = sum(4 * (-(-size // 32) if bits else size) for size, _, bits, slots in rows if _whole(slots))
        staged = max((4 * self.storage.size(f"{i.id}_in") for i in self.program.inputs), default=0)
        return {"history": history, "checkpoint": checkpoint, "record": whole + staged, "listed": 0}

    def start(self) -> list[str]:
        """Statements before the backward pass: adjoints of states and sums begin with 0."""
        lines = []
        for op in self.adjoints.values():
            lines += [f"d_{n}.data.clear();" for n in op.states] + [f"{g}_sums.data.clear();" for g in op.gradients]
        return lines

    def _size(self, name: str) -> int:
        if name in self.gradients.sums:
            return self.gradients.sums[name]
        return self.storage.size(name.removeprefix("d_"))


def _group(comment: str, lines: list[str]) -> Group:
    return {"comment": comment, "lines": lines}


def _dense_inputs(program: StepProgram) -> dict[str, int]:
    """Dense weight to the number of its inputs."""
    return {op.weight: program.buffers[op.weight].shape[1] for op in program.forward if isinstance(op, Dense)}


def _parameters(program: StepProgram) -> list[str]:
    inputs = _dense_inputs(program)
    found = []
    for p in program.parameters.values():
        turned = f", {inputs[p.name]}" if p.name in inputs else ""
        found.append(f'Parameter {p.name}{{"{p.name}", {max(1, p.value.size)}{turned}}}; // {comment_text(p.label)}')
    return found


def _pointers(steps: Steps, learned: list[str]) -> list[str]:
    lines = [f"const float *{p};" for p in steps.program.parameters]
    lines += [f"float *{w}_back;" for w in steps.bound.turned] + [f"std::uint32_t *{w}_half;" for w in steps.bound.rounded]
    return lines + [f"Learned {p}_learned;" for p in learned]


def _parameter_binding(steps: Steps, learned: list[str]) -> list[str]:
    lines = [f"net.{p} = {p}.value.data();" for p in steps.program.parameters]
    lines += [f"net.{w}_back = {w}.copy.data();" for w in steps.bound.turned]
    lines += [f"net.{w}_half = {w}.half.data();" for w in steps.bound.rounded]
    for p in learned:
        numbers = f"{{{p}.gradient.data(), {p}.slices, static_cast<int>({p}.numbers), {p}.slice_rows, !last_segment()}}"
        lines.append(f"net.{p}_learned = {{{p}.value.data(), {p}.moment1.data(), {p}.moment2.data(), {numbers}}};")
    return lines


def _copies_layout(steps: Steps) -> list[str]:
    lines = [f"{w}.copy.resize({w}.numbers);" for w in steps.bound.turned]
    for w, (i, o) in steps.bound.rounded.items():
        lines.append(f"{w}.half.resize(static_cast<std::size_t>(half_rows({i})) * half_pairs({o}));")
    return lines


def _whole(slots: str) -> bool:
    """Whether a buffer has slots for the whole sequence, or for all that is ever read of it."""
    return not slots or "steps" in slots


def _setup(storage: Storage, buffers: Buffers, learned: list[str]) -> list[str]:
    """Statements that register tensors."""
    program = storage.program
    number = len(moments(program.optimizer))
    lines = []
    for p in program.parameters.values():
        shape = "{" + ", ".join(map(str, p.value.shape or (1,))) + "}"
        lines.append(f"add_learned({p.name}, {shape}, {number});" if p.name in learned else f"add_parameter({p.name}, {shape});")
    lines += [f'add_input("{i.id}", {i.id}_in);' for i in program.inputs]
    named = {buffer for p in program.populations for buffer in p.output_buffers.values()}
    for op in program.forward:
        if isinstance(op, NeuronStep):
            lines += [f'add_begun("{s}_initial", {s});' for s in op.states]
            for o in op.outputs:
                name = f'"{o}_initial"' if o in named and storage.kept(o).past else "nullptr"
                lines.append(f"add_begun({name}, {o});")
    lines += [f'add_record("{o.record}", {o.record});' for o in program.outputs]
    lines += [f"add_deltas({name}, {ahead});" for name, ahead in buffers.deltas()]
    if isinstance(program.loss, GivenAdjoint):
        lines += [f'add_adjoint("d_{o.record}", d_{o.record}, true);' for o in program.outputs if o.id == program.loss_output]
        lines += [f'add_adjoint("d_{population}", d_{current}, false);' for population, current in buffers.shown().items()]
    if learned or program.optimizer is not None:
        classes = next(storage.size(o.record) for o in program.outputs if o.id == program.loss_output)
        lines.append(f"add_labels({classes});")
    return lines


def _work(steps: Steps) -> dict[str, int]:
    """Weights that a step of a sample reads: behind lists of spikes, behind rows of numbers, and back."""
    program = steps.program
    dense = [(op, program.parameters[op.weight].value.size) for op in program.forward if isinstance(op, Dense)]
    listed = sum(size for op, size in dense if steps.spikes(op.source.buffer))
    back = sum(program.parameters[op.weight].value.size for op in program.backward if isinstance(op, DenseInputGradient))
    return {"listed": listed, "valued": sum(size for _, size in dense) - listed, "back": back}
