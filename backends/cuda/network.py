"""The data that the templates of a CUDA project are rendered with: its kernels, their launches, and the buffers of a session."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from typing import Literal, NamedTuple

from snnc.backends.codegen.names import comment_text
from snnc.backends.codegen.updates import group_numbers
from snnc.backends.cuda.kernels.copies import LANES, WeightCopy
from snnc.backends.cuda.kernels.gradients import Gradients
from snnc.backends.cuda.kernels.limits import limit_name
from snnc.backends.cuda.kernels.steps import Steps
from snnc.backends.cuda.schedule.cores import MAX_NEURONS
from snnc.backends.cuda.schedule.launches import Launch, Launches
from snnc.backends.cuda.schedule.overlap import interleave, overlapping
from snnc.backends.cuda.schedule.plan import LaunchPlan
from snnc.backends.cuda.schedule.sequence_calls import SequenceCalls, preparation_launch
from snnc.backends.native.composed_loss import target_setup
from snnc.backends.native.memory import Needs
from snnc.backends.native.project_files import Context, program_context
from snnc.backends.native.storage import SequenceStorage
from snnc.backends.native.tables import Table
from snnc.compiler.ir.arrays.sizes import FLOAT
from snnc.compiler.ir.graph import Array
from snnc.compiler.ir.plan import Precision
from snnc.compiler.ir.step_operations import DenseProduct, InputGradient, NeuronAdjoint, NeuronStep
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.losses.external import ExternalLoss
from snnc.compiler.losses.update_rules import moments
from snnc.compiler.losses.weight_rounding import parameter_key
from snnc.compiler.lowering.statistics import stored_adjoints


class SequenceBuffer(NamedTuple):
    """A buffer with a row of values for each stored step and sample."""

    name: str
    size: int
    """Number of values in a row."""
    past: int
    """Number of stored steps before the first one."""
    form: Literal["numbers", "halves", "spikes"]
    slots: str
    """C++ expression of the number of stored steps; empty for inputs."""
    half: str = "Half"
    """The 16-bit type."""

    @property
    def bytes(self) -> int:
        """Bytes per step and sample."""
        return {"numbers": 4 * self.size, "halves": 4 * -(-self.size // 2), "spikes": 4 * -(-self.size // LANES)}[self.form]

    @property
    def kind(self) -> str:
        """C++ type that kernels see."""
        return {"numbers": "Rows<", "halves": f"Halves<{self.half}, ", "spikes": "Bits<"}[self.form] + f"{self.size}, {self.past}>"

    @property
    def full(self) -> bool:
        """Whether the number of slots depends on the length of the sequence, as that of an input does."""
        return not self.slots or "steps" in self.slots

    @property
    def member(self) -> str:
        """C++ declaration of the session's member."""
        return f"Held {self.name}{{{self.size}, {self.past}, Form::{self.form.upper()}, {str(self.full).lower()}}};"


def network_context(
    storage: SequenceStorage, values: Mapping[str, Array], sizes: Mapping[str, int], precision: Precision = "float32"
) -> tuple[Context, list[Table]]:
    """Return the template data, and the tables of connections."""
    program = storage.program
    trains = program.optimizer is not None
    steps = Steps(storage, precision)
    sequence_calls = SequenceCalls(steps, precision)
    plan = LaunchPlan(steps, sequence_calls, trains)
    overlaps = overlapping(storage, plan.backward_cores)
    gradients = Gradients(steps, sequence_calls, overlaps)
    if trains:
        gradients.add_all()
    record = next((o.record for o in program.outputs if o.id == program.loss_output), None)
    buffers = Buffers(steps, gradients, trains, plan)
    learned, groups = [u.parameter for u in program.update] if trains else [], group_numbers(program)
    copies, adjoints = list(steps.connections.copies.values()), buffers.adjoints.values()
    launches = _all_launches(steps, plan, trains)
    context: Context = {
        **program_context(program, values, sizes, "of."),
        "neurons": plan.neurons,
        "walks": plan.walks,
        "sums": plan.sums,
        "feedbacks": plan.feedbacks,
        "cores": plan.cores,
        "launches": [asdict(launch) for launch in launches],
        "kernel_numbers": _kernel_numbers(launches),
        "record_phases": steps.records(),
        "forward": plan.forward,
        "backward": interleave(plan.backward, plan.backward_cores, gradients.beside),
        "overlaps": bool(overlaps),
        "scratch": plan.scratch,
        **_session_state(buffers, gradients, learned, record),
        "gradient_calls": gradients.calls,
        "work": list(sequence_calls.scratch_sizes),
        "gradients": gradients.lines,
        "sum_timer": gradients.sum_timer,
        "copies": [copy.statement for copy in copies],
        "spare_copies": plan.spare_copies,
        "prepared": list(sequence_calls.prepared.values()),
        "half": steps.half,
        "half_weights": trains and program.rounding is not None,
        "half_random": program.rounding is not None and program.rounding.kind == "stochastic",
        "limited": bool(steps.limits.sources),
        "state_adjoints": [f"d_{n}" for op in adjoints for n in op.states],
        "accumulated": [n for op in adjoints for n in (*(f"d_{s}" for s in op.states), *(f"{g}_sums" for g in op.gradients))],
        "truncate": program.truncate or 0,
        "updates": [_update(program, p, groups.get(p)) for p in learned],
        "tables": len(steps.connections.tables),
        "record": record,
        "classes": storage.size(record) if record is not None else 0,
        "bytes_per_step": buffers.bytes_per_step(),
        "memory": buffers.needs(_fixed_bytes(program, learned, copies)),
    }
    return context, steps.connections.tables


def _update(program: StepProgram, parameter: str, group: int | None) -> Context:
    return {
        "name": parameter,
        "learned": f"{parameter}_learned",
        "numbers": max(1, program.parameters[parameter].value.size),
        "group": group,
        "rounding": _rounded_update(program, parameter),
        "remains": _keeps_remainder(program, parameter),
    }


def launches_of(program: StepProgram, precision: Precision = "float32") -> list[Launch]:
    """Return the launches of a training step, or of a forward pass if `program` does not train, without emitting anything."""
    steps, trains = Steps(SequenceStorage(program), precision), program.optimizer is not None
    return _all_launches(steps, LaunchPlan(steps, SequenceCalls(steps, precision), trains), trains)


def _session_state(buffers: Buffers, gradients: Gradients, learned: list[str], record: str | None) -> Context:
    steps, plan, prepared = buffers.steps, buffers.plan, gradients.sequence_calls.prepared.values()
    limited = steps.limits.sources
    scores = []
    if buffers.trains and record is not None:
        scores.append(f"scores.resize(static_cast<std::size_t>(loss_rows(steps, batch)) * {steps.storage.size(record)});")
    return {
        "fields": [
            *((comment, [f"{one.kind} {one.name};" for one in group]) for comment, group in buffers.groups),
            ("Parameters.", _pointers(steps, learned)),
            ("Connections.", steps.connections.fields),
            *([("Spikes that sources send in one step.", [f"SpikeLimit {limit_name(b)};" for b in limited])] if limited else []),
            ("Currents from outside a recurrence, at all steps.", plan.fields),
        ],
        "members": [
            *((comment, [one.member for one in group]) for comment, group in buffers.groups),
            ("Parameters.", _parameters(steps.program)),
            ("Copies of weights in the layouts that the products read.", [f"device::Array<std::uint32_t> {p.name};" for p in prepared]),
        ],
        "setup": _setup(steps.storage, buffers, learned),
        "layout": [
            *(f"{one.name}.resize({one.slots}, batch);" for one in buffers.all if one.slots),  # an input is resized when it is set
            *scores,
            *(f"{copy.array}.resize({copy.words}u);" for copy in steps.connections.copies.values()),
            *gradients.layout,
            *(f"{p.name}.make_room(prepared_bytes({p.layout}) / 4);" for p in prepared),
        ],
        "binding": [
            *(f"{one.name}.view(net.{one.name}, first);" for one in buffers.all),
            *(f"net.{p} = {p}.value.data();" for p in steps.program.parameters),
            *(copy.binding for copy in steps.connections.copies.values()),
            *steps.connections.binding,
            *(f"net.{limit_name(b)} = {{{one.capacity}.value.data(), {one.key}.value.data()}};" for b, one in limited.items()),
            *plan.binding,
        ],
    }


def _all_launches(steps: Steps, plan: LaunchPlan, trains: bool) -> list[Launch]:
    """Return the launches in order, without those that the network does not need."""
    storage, program, launches = steps.storage, steps.program, Launches(steps)
    packed = [FLOAT * storage.size(f"{i.id}_in") for i in program.inputs if i.kind == "spikes"]
    first = [Launch("pack", "once", "inputs", sum(packed))] if packed else []
    # The cleared steps are few, so their bytes are not counted.
    first.append(Launch("clear", "once", "steps before the sequence"))
    forward = [launch for launch in plan.launches if launch.way == "forward"]
    if not trains:
        return [*first, *forward]
    record = next(o.record for o in program.outputs if o.id == program.loss_output)
    loss = Launch("loss", "once", "loss", 3 * FLOAT * storage.size(record))
    overlaps = overlapping(storage, plan.backward_cores)
    pairs = [(one, getattr(op, "gradient", "")) for op in program.backward if (one := launches.gradient(op)) is not None]
    gradients = [replace(one, during=overlaps.get(gradient, "")) for one, gradient in pairs]
    learned = sum(program.parameters[u.parameter].value.size for u in program.update)
    # Weights and moments are read and written, gradients are read.
    update = Launch("update", "once", "parameters", fixed_bytes=FLOAT * learned * (2 * (1 + len(moments(program.optimizer))) + 1))
    backward = [launch for launch in plan.launches if launch.way == "backward"]
    first.append(Launch("clear", "once", "deltas after the sequence"))
    sums = launches.sums()
    return [*first, *_preparations(steps, plan), *forward, loss, *backward, *gradients, *([sums] if sums else []), update]


def _preparations(steps: Steps, plan: LaunchPlan) -> list[Launch]:
    """Return the launches that copy the weights, after each update, into the forms that kernels read."""
    # If the weights of all cores fit on chip, cores read the weights themselves, and no kernel reads the copies.
    on_chip = bool(plan.spare_copies) and all(core.size <= MAX_NEURONS for core in plan.cores)
    copied = 0 if on_chip else 2 * 4 * sum(copy.words for copy in steps.connections.copies.values())
    copies = [Launch("prepare", "once", "copies", fixed_bytes=copied)] if copied else []
    prepared = plan.sequence_calls.prepared.values()
    return [*copies, preparation_launch(prepared)] if prepared else copies


def _kernel_numbers(launches: Sequence[Launch]) -> dict[str, int]:
    """Return C++ constants for the numbers of timed kernels: indices of the first launch of each pass, of the loss and of the update."""
    ways = [launch.way for launch in launches]
    numbers = {f"{way.upper()}_KERNELS": ways.index(way) if way in ways else 0 for way in ("forward", "backward", "gradient")}
    kinds = [launch.kind for launch in launches]
    return numbers | {f"{kind.upper()}_KERNEL": kinds.index(kind) if kind in kinds else 0 for kind in ("loss", "update")}


class Buffers:
    """The sequence buffers of a program: as kernels see them (``Net``), as the session allocates them, and their sizes."""

    def __init__(self, steps: Steps, gradients: Gradients, trains: bool, plan: LaunchPlan) -> None:
        self.steps = steps
        self.plan = plan
        self.storage = steps.storage
        self.program = steps.program
        self.gradients = gradients
        self.trains = trains
        self.adjoints = {op.population: op for op in self.program.backward if isinstance(op, NeuronAdjoint)} if trains else {}

    @cached_property
    def groups(self) -> list[tuple[str, list[SequenceBuffer]]]:
        """The buffers of every input, population and output, with a comment for each group.

        In the expressions of slots, ``kept`` is the length of a segment, and ``steps`` is the length of the whole sequence.
        """
        program, groups = self.program, []
        for i in program.inputs:
            groups.append((f"Input {comment_text(i.label)}.", [self._source(f"{i.id}_in", ""), *self._sent(f"{i.id}_in")]))
        for op in program.forward:
            if isinstance(op, NeuronStep):
                groups.append(self._population(op))
        for o in program.outputs:
            buffers = [self._numbers(o.record, "steps")]
            if self.trains and o.id == program.loss_output:
                buffers.append(self._numbers(f"d_{o.record}", "training ? adjoint_slots(steps) : 1"))
            groups.append((f"Output {comment_text(o.label)}.", buffers))
        return groups

    @property
    def all(self) -> list[SequenceBuffer]:
        """All buffers."""
        return [buffer for _, buffers in self.groups for buffer in buffers]

    def _population(self, op: NeuronStep) -> tuple[str, list[SequenceBuffer]]:
        info = self.program.population(op.population)
        adjoint = self.adjoints.get(op.population)
        half_histories = self.steps.half_histories(op)
        buffers: list[SequenceBuffer] = []
        for state, n in zip(info.kernel.states, op.states, strict=True):
            has_history = adjoint is not None and state in info.kernel.history
            history = "training ? kept + 1 : 1"
            buffers.append(self._numbers(n, history if has_history and n not in half_histories else "1", 1))
            if n in half_histories:
                buffers.append(SequenceBuffer(half_histories[n], self.storage.size(n), 1, "halves", history))
        for n in op.outputs:
            spikes = self.program.buffers[n].kind == "spikes"
            buffers += [self._source(n, f"{'steps' if spikes else 'kept'} + {self.storage.stored(n).past}"), *self._sent(n)]
        for n in op.saved:
            slots = "training ? kept : 1" if self.trains else "1"
            buffers.append(SequenceBuffer(n, self.storage.size(n), 0, "halves" if n in half_histories else "numbers", slots))
        if adjoint is not None:
            for n in op.currents:
                slots = f"training ? {'steps' if info.id in stored_adjoints(self.program) else f'kept + {self.ahead(n)}'} : 1"
                short = SequenceBuffer(f"d_{n}", self.storage.size(n), 0, "halves", slots, "BFloat16")
                buffers.append(short if self.steps.rounds_delta(n) else self._numbers(f"d_{n}", slots))
            buffers += [self._numbers(f"d_{n}", "1") for n in op.states]
            buffers += [SequenceBuffer(f"{g}_sums", self.gradients.sums[f"{g}_sums"], 0, "numbers", "1") for g in adjoint.gradients]
        return f"Population {comment_text(info.label)}.", buffers

    def ahead(self, current: str) -> int:
        """Return the number of steps of the next segment whose deltas of `current` are read: the longest delay of its connections."""
        reading = [op for op in self.program.backward if isinstance(op, InputGradient) and op.target == current]
        return max((op.source.delay for op in reading), default=0)

    def deltas(self) -> list[tuple[str, int]]:
        """Return the name of each buffer of deltas that the previous segment reads, with the number of steps that it reads."""
        names = [(f"d_{n}", self.ahead(n)) for op in self.differentiated_steps() for n in op.currents]
        at_all_steps = {f"d_{n}" for n in self.watched_currents().values()}
        return [(name, ahead) for name, ahead in names if ahead and name not in at_all_steps]

    def watched_currents(self) -> dict[str, str]:
        """Return, by population, the current whose adjoint is stored at every step because the caller of the program reads it."""
        ids = stored_adjoints(self.program)
        return {op.population: op.currents[0] for op in self.differentiated_steps() if op.population in ids}

    def differentiated_steps(self) -> list[NeuronStep]:
        """Return the forward operations of populations that have an adjoint."""
        return [op for op in self.program.forward if isinstance(op, NeuronStep) and op.population in self.adjoints]

    def _source(self, name: str, slots: str) -> SequenceBuffer:
        spikes = self.program.buffers[name].kind == "spikes"
        return SequenceBuffer(name, self.storage.size(name), self.storage.stored(name).past, "spikes" if spikes else "numbers", slots)

    def _sent(self, name: str) -> list[SequenceBuffer]:
        """Return the buffer of the spikes that connections receive from a source, if its number of spikes is limited."""
        if name not in self.steps.limits.sources:
            return []
        past = self.storage.stored(name).past
        return [SequenceBuffer(self.steps.limits.received(name), self.storage.size(name), past, "spikes", f"steps + {past}")]

    def _numbers(self, name: str, slots: str, past: int = 0) -> SequenceBuffer:
        return SequenceBuffer(name, self.storage.size(name.removeprefix("d_")), past, "numbers", slots)

    def bytes_per_step(self) -> int:
        """Return the bytes per step and sample; buffers whose size does not depend on the number of steps are not counted."""
        row_bytes = [buffer.bytes for buffer in self.all if buffer.full or "kept" in buffer.slots]
        return sum(row_bytes) + 4 * self.plan.scratch["training"] + self._staged

    def needs(self, fixed: int) -> Needs:
        """Return the memory needs of a session, including `fixed` bytes; spikes take one bit per neuron, whatever the activity."""
        history = sum(buffer.bytes for buffer in self.all if "kept" in buffer.slots) + 4 * self.plan.scratch["training"]
        names = {n for op in self.program.forward if isinstance(op, NeuronStep) for n in (*op.states, *op.outputs)}
        saved = [buffer for buffer in self.all if buffer.name in names and not buffer.full]
        checkpoint = sum(4 * buffer.size * (buffer.past if "kept" in buffer.slots else 1) for buffer in saved)
        full = sum(buffer.bytes for buffer in self.all if buffer.full)
        return Needs(fixed, {"once": history, "steps": full + self._staged, "segment": history, "block": 0}, checkpoint)

    @property
    def _staged(self) -> int:
        """Bytes per step and sample of the inputs before they are packed."""
        return max((4 * self.storage.size(f"{i.id}_in") for i in self.program.inputs if i.kind == "spikes"), default=0)


def _parameters(program: StepProgram) -> list[str]:
    inputs = {op.weight: program.buffers[op.weight].shape[1] for op in program.forward if isinstance(op, DenseProduct)}
    members = []
    for p in program.parameters.values():
        turned = f", {inputs[p.name]}" if p.name in inputs else ""
        members.append(f'Parameter {p.name}{{"{p.name}", {max(1, p.value.size)}{turned}}}; // {comment_text(p.label)}')
    return members


def _pointers(steps: Steps, learned: list[str]) -> list[str]:
    lines = [f"const float *{p};" for p in steps.program.parameters]
    lines += [copy.field for copy in steps.connections.copies.values()]
    return lines + [f"Learned {p}_learned;" for p in learned]


def _fixed_bytes(program: StepProgram, learned: Collection[str], copies: Iterable[WeightCopy]) -> int:
    """Return the bytes of parameters, of gradients and moments of the learned ones, and of copies of weights."""
    each = 1 + len(moments(program.optimizer))
    numbers = sum(p.value.size * (1 + (name in learned) * each) for name, p in program.parameters.items())
    return 4 * (numbers + sum(copy.words for copy in copies))


def _setup(storage: SequenceStorage, buffers: Buffers, learned: list[str]) -> list[str]:
    program = storage.program
    number = len(moments(program.optimizer))
    lines = []
    for p in program.parameters.values():
        shape = "{" + ", ".join(map(str, p.value.shape or (1,))) + "}"
        lines.append(f"add_learned({p.name}, {shape}, {number});" if p.name in learned else f"add_parameter({p.name}, {shape});")
        lines += [f"{p.name}.half = true;"] if p.half else []
        lines += [f"add_remainder({p.name}, {shape});"] if p.name in learned and _keeps_remainder(program, p.name) else []
    lines += [f'add_input("{i.id}", {i.id}_in);' for i in program.inputs]
    named = {buffer for p in program.populations for buffer in p.output_buffers.values()}
    for op in program.forward:
        if isinstance(op, NeuronStep):
            lines += [f'add_begun("{s}_initial", {s});' for s in op.states]
            for o in op.outputs:
                name = f'"{o}_initial"' if o in named and storage.stored(o).past else "nullptr"
                lines.append(f"add_begun({name}, {o});")
    limits = buffers.steps.limits
    lines += [*(f"add_sent({limits.received(b)}, {b});" for b in limits.sources), *(["add_dropped();"] if limits.sources else [])]
    lines += [f'add_record("{o.record}", {o.record});' for o in program.outputs]
    lines += [f"add_deltas({name}, {ahead});" for name, ahead in buffers.deltas()]
    if isinstance(program.loss, ExternalLoss):
        lines += [f'add_adjoint("d_{o.record}", d_{o.record}, true);' for o in program.outputs if o.id == program.loss_output]
    if program.optimizer is not None:
        lines += [f'add_adjoint("d_{population}", d_{current}, false);' for population, current in buffers.watched_currents().items()]
    if learned or program.optimizer is not None:
        classes = next(storage.size(o.record) for o in program.outputs if o.id == program.loss_output)
        lines.append(target_setup(program.loss, classes))
    return lines


def _rounded_update(program: StepProgram, name: str) -> list[str]:
    """Return the statements that update element `i` of a parameter and round it; empty if the parameter is float32 or is not updated.

    Values are representable in float16, but stored as float32. ``CHANGED`` stands for the update itself, which the template prints.
    """
    rounding = program.rounding
    if not program.parameters[name].half or rounding is None:
        return []
    value, rest = f"net.{name}_learned.value[i]", f"net.{name}_learned.remainder[i]"
    match rounding.kind:
        case "nearest":
            return ["CHANGED", f"{value} = nearest_half({value});"]
        case "master":
            store_remainder = ["const float exact = " + value + ";", f"{value} = nearest_half(exact);", f"{rest} = exact - {value};"]
            return [f"{value} += {rest};", "CHANGED", *store_remainder]
        case "stochastic":
            number = [op.parameter for op in program.update].index(name)
            random = f"drawn(scrambled({parameter_key(rounding.seed, number)}u ^ number), {_place(program, name)})"
            return ["CHANGED", f"{value} = rounded_at_random({value}, {random});"]


def _place(program: StepProgram, name: str) -> str:
    """Return the C++ index of element `i` in the model's array; dense weights are stored transposed, [inputs][outputs]."""
    if not any(isinstance(op, DenseProduct) and op.weight == name for op in program.forward):
        return "static_cast<unsigned>(i)"
    outputs, inputs = program.buffers[name].shape
    return f"static_cast<unsigned>(i % {outputs} * {inputs} + i / {outputs})"


def _keeps_remainder(program: StepProgram, name: str) -> bool:
    return program.parameters[name].half and program.rounding is not None and program.rounding.kind == "master"
