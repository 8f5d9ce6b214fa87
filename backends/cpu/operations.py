"""Statements of ``network.cpp`` for each operation of a step program."""

from dataclasses import dataclass, field, replace
from functools import singledispatchmethod
from typing import Any, Final, TypeAlias

from snnc.backends.codegen.printing import Guarded, Statement, c_literal
from snnc.backends.cpu.neurons import SHORT
from snnc.backends.cpu.stages import Stages
from snnc.backends.native.row_buffers import LINE, ONE, RowBuffer, Slots
from snnc.backends.native.storage import SequenceStorage, is_maximum
from snnc.backends.native.tables import Table, windows_expression, wires_of
from snnc.compiler.ir import step_operations as ops
from snnc.compiler.ir.step_program import PopulationInfo
from snnc.compiler.lowering.spike_limits import limited_sources
from snnc.compiler.lowering.statistics import stored_adjoints
from snnc.compiler.neurons.expression import Number, Symbol

Wired: TypeAlias = ops.SparseProduct | ops.AddOneToOne | ops.Pooling | ops.Rescale | ops.AddReduced | ops.AddSlice | ops.AddPadded
"""Connections that are stored as tables of wires."""
WiredWeightGradient: TypeAlias = ops.SparseWeightGradient | ops.OneToOneWeightGradient | ops.RescaleWeightGradient
WiredInputGradient: TypeAlias = (
    ops.SparseInputGradient
    | ops.OneToOneInputGradient
    | ops.PoolingGradient
    | ops.RescaleInputGradient
    | ops.ReduceGradient
    | ops.SliceGradient
    | ops.PadGradient
)

SHARED: Final = 1 << 20
"""All threads share one gradient of a dense weight with more bytes than this, if only one operation contributes to the gradient. Of the
gradients of other parameters, each thread has its own copy (docs/decisions/0015-cpu-program.md)."""
COPIED: Final = 1 << 20
"""Maximum bytes of a weight for which backward products always read a copy. With checkpoints, they read larger weights in place and
interleave the samples at each step instead, except in bfloat16."""
ConvolveGradient: TypeAlias = ops.ConvolveWeightGradient | ops.ConvolveBiasGradient | ops.ConvolveInputGradient


@dataclass(frozen=True)
class BlockStatement:
    """A statement that runs once for all steps of a block, or once per step."""

    statement: str
    each_step: bool = False


@dataclass
class Statements:
    """Statements of the emitted network, collected by their position in the program.

    `setup`, `layout` and `prepare` are statements of the constructor, of ``lay_out`` and of ``prepare`` of the C++ class ``Network``.
    `forward` and `backward` run at each step, and `gradients` after each block of steps of the backward pass. `start` and `finish` run
    before and after the backward pass.
    """

    storage: SequenceStorage
    trains: bool
    stages: Stages
    members: list[str] = field(default_factory=list)
    """Declarations of members of ``Network`` that compute connections or hold their results."""
    setup: list[str] = field(default_factory=list)
    layout: list[str] = field(default_factory=list)
    prepare: list[Statement] = field(default_factory=list)
    enter: list[str] = field(default_factory=list)
    """Statements that run before the steps of a forward pass."""
    rounded: list[str] = field(default_factory=list)
    """Statements that update rounded copies of parameters."""
    forward: list[Statement] = field(default_factory=list)
    before_block: list[BlockStatement] = field(default_factory=list)
    """Statements before a block of steps in the forward pass, such as the products of all its steps."""
    backward: list[Statement] = field(default_factory=list)
    after_block: list[str] = field(default_factory=list)
    """Statements after a block of steps in the backward pass, such as the products of all its steps."""
    gradients: list[str] = field(default_factory=list)
    shared: dict[str, str] = field(default_factory=dict)
    """Parameter -> statement with which a worker adds its part to a gradient shared by all threads, after a block of steps."""
    readout: dict[str, Any] | None = None
    """Arguments of the macro ``collapsed_loss`` of ``readout.jinja``, which a worker runs before the loss of its samples; None: the loss
    reads the record."""
    scored: dict[str, str] = field(default_factory=dict)
    """Rows that the loss reads instead of the record, and their number of steps; empty: it reads the record."""
    start: list[str] = field(default_factory=list)
    finish: list[str] = field(default_factory=list)
    row_buffers: list[RowBuffer] = field(default_factory=list)
    """Row buffers in addition to those of populations and records."""
    sums: dict[str, int] = field(default_factory=dict)
    """Name -> size of each array of sums that every thread has."""
    tables: list[Table] = field(default_factory=list)
    weights: dict[str, str] = field(default_factory=dict)
    """Connection -> C++ expression of its weights."""

    # ---- forward -----------------------------------------------------------------------------------------------------

    @singledispatchmethod
    def add(self, op: ops.ForwardOp | ops.BackwardOp) -> None:
        """Add the statements of `op`."""
        raise TypeError(op)

    @add.register
    def _fill(self, op: ops.Fill) -> None:
        call = f"fill(w, {op.target}, t, {{{', '.join(f'&{b}' for b in op.biases)}}});"
        if op.target in self.stages.filled(self.storage.program):
            self.before_block.append(BlockStatement(call, each_step=True))
        else:
            self.forward.append(call)

    @add.register
    def _dense(self, op: ops.DenseProduct) -> None:
        """Add a dense connection: once before each block of steps if possible, else in each step."""
        c, weight = op.connection, op.weight
        outputs, inputs = self.storage.program.buffers[weight].shape
        self.members.append(f"Dense {c}{{{inputs}, {outputs}}};")
        if self.storage.precision == "bfloat16":
            self.setup.append(f"{c}.keep_rounded();")
            self.rounded.append(f"{c}.round({weight}, worker, workers);")
        in_block = c in self.stages.forward
        steps = "from, to" if in_block else "t, t + 1"
        call = f"{c}.forward(w, {op.source.buffer}, {op.source.delay}, {steps}, {weight}, {op.target}, scratch);"
        if in_block:
            self.before_block.append(BlockStatement(call))
        else:
            self.forward.append(call)

    @add.register
    def _wired(self, op: Wired) -> None:
        c = op.connection
        wires = wires_of(op, self.storage)
        first = len(self.tables)
        self.tables += wires.tables()
        source = f"{op.source.buffer}, {earlier_step(op.source)}"
        if self.storage.reads_lists(op):
            size = self.storage.size(op.source.buffer)
            self.members.append(f"const SpikeMaximum {c}{{tables[{first}], tables[{first + 1}], {size}}};")
            self.forward.append(f"{c}.forward(w, {source}, {op.target}, t, scratch);")
            return
        kind = "Maximum" if is_maximum(op) else "const Wiring"
        self.members.append(f"{kind} {c}{{tables[{first}], tables[{first + 1}]}};")
        if is_maximum(op):
            self.forward.append(f"{c}.forward(w, {source}, {op.target}, t);")
            return
        if wires.constants is not None:
            self.members.append(f"const Array<float> {c}_constants = constants(tables[{first + 2}]);")
        weight = op.weight if isinstance(op, ops.SparseProduct | ops.AddOneToOne | ops.Rescale) else None
        self.weights[c] = f"{c}_constants.data()" if weight is None else f"{weight}.value.data()"
        self.forward.append(f"{c}.forward(w, {source}, {self.weights[c]}, {op.target}, t, scratch);")
        if isinstance(op, ops.Rescale) and op.bias is not None:
            self.members.append(f"const Biases {c}_biases{{tables[{len(self.tables) - 1}]}};")
            self.forward.append(f"{c}_biases.forward(w, {op.target}, t, {op.bias}.value.data());")

    @add.register
    def _convolve(self, op: ops.Convolve) -> None:
        """Add a convolution, with the maximum pooling of its result if both are computed together."""
        c, windows = op.connection, op.windows
        outputs = self.storage.program.buffers[op.weight].shape[0]
        arguments = [windows_expression(windows, windows.output, windows.channels, outputs, op.groups)]
        if c in self.storage.pooled:
            pool = self.storage.pooled[c]
            read = replace(pool, size=pool.reach)
            arguments = [
                windows_expression(windows, pool.reach, windows.channels, outputs, op.groups),
                windows_expression(read, pool.output, outputs, outputs, op.groups),
            ]
            self.layout.append(f"{c}.keep(training ? segment : 0, batch);")
        self.members.append(f"Convolution {c}{{{', '.join(arguments)}}};")
        bias = f"&{op.bias}" if op.bias is not None else "nullptr"
        source = f"{op.source.buffer}, {earlier_step(op.source)}"
        self.forward.append(f"{c}.forward(w, {source}, {op.weight}, {bias}, {op.target}, t, scratch);")

    @add.register
    def _neuron_step(self, op: ops.NeuronStep) -> None:
        self.forward.append(self.neuron_call(op))
        self.enter += self._first_history(op)
        self.forward += [Guarded("!again", f"{o}.list_rows(w, t);") for o in op.outputs if self.storage.stored(o).listed]
        near, limited = self._outputs_with_support(op), limited_sources(self.storage.program)
        self.forward += [Guarded("training && !again", f"{o}.forget_dropped(w, t, {o}_near);") for o in near if o in limited]
        self.forward += [Guarded("training && !again", f"{o}_near.list_rows(w, t);") for o in near]

    def _info(self, op: ops.NeuronStep | ops.NeuronAdjoint) -> PopulationInfo:
        return self.storage.program.population(op.population)

    def _first_history(self, op: ops.NeuronStep) -> list[str]:
        """Return the statements that store the states before the first step."""
        kernel, lines, keep = self._info(op).kernel, [], SHORT[self.storage.precision].keep
        parameters = dict(zip(kernel.parameters, op.parameters, strict=True))
        for state, n in zip(kernel.states, op.states, strict=True):
            match self.storage.rounded[op.population].get(state):
                case Number(value):
                    lines.append(f"{keep}(w, {n}, first - 1, {n}_history, {c_literal(value)});")
                case Symbol(name):
                    scalar = self.storage.program.buffers[parameters[name]].shape == ()
                    offset = f"{parameters[name]}.value{'[0]' if scalar else '.data()'}"
                    lines.append(f"{keep}(w, {n}, first - 1, {n}_history, {offset});")
        return lines

    def neuron_call(self, op: ops.NeuronStep) -> str:
        """Return the statement that runs a step of a population."""
        arguments = [f"{a}.value.data()" for a in op.parameters]
        arguments += [f"{i}.row(t, w.first)" for i in op.currents]
        arguments += [f"{s}.row(t - 1, w.first)" for s in op.states] + [f"{s}.row(t, w.first)" for s in op.states]
        kernel = self._info(op).kernel
        rounded = self.storage.rounded[op.population]
        saved = dict(zip(kernel.saved, op.saved, strict=True))
        histories = {s: f"{n}_history" for s, n in zip(kernel.states, op.states, strict=True)} | saved
        arguments += [f"{o}.rows.row(t, w.first)" for o in op.outputs]
        arguments += [f"{n}.row(t, w.first)" for k, n in saved.items() if k not in rounded]
        arguments += [f"{o}_near.rows.row(t, w.first)" for o in self._outputs_with_support(op)]
        arguments += [f"{histories[n]}.row(t, w.first)" for n in rounded]
        return f"{op.population}_forward({', '.join(('rows', *arguments))});"

    def _outputs_with_support(self, op: ops.NeuronStep) -> list[str]:
        return [o for o in op.outputs if self.trains and o in self.storage.outputs_with_support]

    @add.register
    def _record(self, op: ops.Record) -> None:
        self.forward.append(f"copy_step(w, {op.source.buffer}.rows, {earlier_step(op.source)}, {op.target}, t);")

    # ---- backward ----------------------------------------------------------------------------------------------------

    @add.register
    def _record_adjoint(self, op: ops.RecordAdjoint) -> None:
        self.backward.append(to_earlier_step(op.source, f"add_step(w, d_{op.target}, t, d_{op.source.buffer}, {earlier_step(op.source)});"))

    @add.register
    def _neuron_adjoint(self, op: ops.NeuronAdjoint) -> None:
        kernel, rounded = self._info(op).kernel, self.storage.rounded[op.population]
        states = {s: f"{n}_history" if s in rounded else n for s, n in zip(kernel.states, op.states, strict=True)}
        arguments = [f"{a}.value.data()" for a in op.parameters]
        for s in kernel.history:
            arguments += [f"{states[s]}.row(t - 1, w.first)", f"{states[s]}.row(t, w.first)"]
        arguments += [f"{k}.row(t, w.first)" for k in op.saved] + [f"d_{o}.row(t, w.first)" for o in op.outputs]
        arguments += [f"d_{s}.row(0, w.first)" for s in op.states] + [f"d_{i}.row(t, w.first)" for i in op.currents]
        for gradient in op.gradients:
            parameter = gradient.removeprefix("d_")
            if self.storage.program.buffers[parameter].shape == ():
                size = self.storage.size((op.currents or op.states)[0])
                self.members.append(f"PerWorker<Array<float>> {gradient}_sums;")
                self.layout.append(f"{gradient}_sums.resize(workers.size());")
                self.sums[f"{gradient}_sums"] = size
                self.start.append(f"{gradient}_sums[mine].resize(padded({size}));")
                self.finish.append(f"{parameter}.gradient(w.index)[0] += sum_of({gradient}_sums[mine], {size});")
                arguments.append(f"{gradient}_sums[mine].data()")
            else:
                arguments.append(f"{parameter}.gradient(w.index)")
        self.start += [f"d_{s}.clear(w, 0);" for s in op.states]
        self.backward.append(f"{op.population}_backward({', '.join(('rows', *arguments))});")
        # The kernel also computes adjoints in the padding, which may be nonzero or not finite; sums over outputs read whole lines.
        self.backward += [f"d_{i}.clear_padding(w, t);" for i in op.currents if self.storage.size(i) % LINE]
        self.backward += [f"d_{o}.clear(w, t);" for o in op.outputs]
        if op.population in stored_adjoints(self.storage.program):
            # The adjoint of the current is stored at all steps, and is a tensor of the ABI.
            name, current = f"d_{op.population}", op.currents[0]
            self.members.append(f"Rows {name}{{{self.storage.size(current)}, 0}};")
            self.row_buffers.append(RowBuffer(name, self.storage.size(current), Slots(0, ("steps",)), ONE))
            self.setup.append(f'add_adjoint("{name}", {name}, false);')
            self.backward.append(f"copy_step(w, d_{current}, t, {name}, t);")

    @add.register
    def _bias(self, op: ops.BiasGradient) -> None:
        self.gradients.append(f"bias_gradient(w, d_{op.target}, first, last, {gradient_of(op.gradient)});")

    @add.register
    def _dense_weight(self, op: ops.DenseWeightGradient) -> None:
        c, rows = op.connection, f"{op.source.buffer}, {op.source.delay}, d_{op.target}, first, last"
        parameter = op.gradient.removeprefix("d_")
        if self._alone(op) and 4 * self.storage.size(parameter) > SHARED:
            self.setup.append(f"{parameter}.written = {parameter}.shared = shares = true;")
            self.shared[parameter] = f"{c}.shared_gradient(workers, worker, parts, {rows}, {parameter}.gradient(0), fresh, scratch);"
            return
        fresh = self.writes(op, "last == steps")
        self.gradients.append(f"{c}.weight_gradient(w, {rows}, {gradient_of(op.gradient)}, {fresh}, scratch);")

    def _alone(self, op: ops.DenseWeightGradient) -> bool:
        """Return whether no other operation contributes to the gradient."""
        return [getattr(other, "gradient", None) for other in self.storage.program.backward].count(op.gradient) == 1

    def writes(self, op: ops.DenseWeightGradient, first: str = "") -> str:
        """Return the C++ condition under which `op` overwrites its gradient instead of adding to it; `first`: additional condition."""
        if not self._alone(op):
            return "false"
        self.setup.append(f"{op.gradient.removeprefix('d_')}.written = true;")
        return f"w.fresh && {first}" if first else "w.fresh"

    @add.register
    def _dense_input(self, op: ops.DenseInputGradient) -> None:
        """Add the gradient that a dense connection returns to its source: once after each block of steps if possible, else in each step."""
        c = op.connection
        self.store_packed(op)
        steps = "first, last" if c in self.stages.backward else "t, t + 1"
        arguments = f"w, d_{op.target}, {steps}, d_{op.source.buffer}, {op.source.delay}, {op.weight}"
        if op.source.buffer in self.storage.outputs_with_support:
            call = f"{c}.near_gradient({arguments}, {op.source.buffer}_near, scratch);"
        else:
            call = f"{c}.input_gradient({arguments}, scratch);"
        if c in self.stages.backward:
            self.after_block.append(call)
        else:
            self.backward.append(call)

    def store_packed(self, op: ops.DenseInputGradient | ops.ConvolveInputGradient) -> None:
        """Store a packed copy of a weight for the backward pass."""
        if isinstance(op, ops.ConvolveInputGradient):
            self.setup.append(f"{op.connection}.keep_packed();")
            self.prepare.append(f"{op.connection}.pack({op.weight}, worker, workers);")
            return
        large = is_large(self.storage, op)
        self.layout.append(f"{op.connection}.keep_packed(training{' && !spares()' if large else ''});")
        condition = "!alone() && !spares()" if large else "!alone()"
        self.prepare.append(Guarded(condition, f"{op.connection}.pack({op.weight}, worker, workers);"))

    @add.register
    def _convolve_gradient(self, op: ConvolveGradient) -> None:
        """Add the gradients of a convolution. Its first backward operation computes all of them, because they read the same cache lines."""
        gradients = [o for o in self.storage.program.backward if isinstance(o, ConvolveGradient) and o.connection == op.connection]
        if op is not gradients[0]:
            return
        c, results = op.connection, dict.fromkeys(("weight", "bias", "adjoint", "near"), "nullptr")
        for gradient in gradients:
            match gradient:
                case ops.ConvolveWeightGradient():
                    results["weight"] = gradient_of(gradient.gradient)
                case ops.ConvolveBiasGradient():
                    results["bias"] = gradient_of(gradient.gradient)
                case ops.ConvolveInputGradient():
                    self.store_packed(gradient)
                    results["adjoint"] = f"&d_{gradient.source.buffer}"
                    near = gradient.source.buffer in self.storage.outputs_with_support and c not in self.storage.pooled
                    # The list lacks neurons whose spikes were dropped. Convolutions, unlike dense connections, return gradients to them.
                    if near and gradient.source.buffer not in limited_sources(self.storage.program):
                        results["near"] = f"&{gradient.source.buffer}_near"
        forward = next(o for o in self.storage.program.forward if isinstance(o, ops.Convolve) and o.connection == c)
        arguments = f"w, {forward.source.buffer}, {forward.source.delay}, d_{op.target}, t, {forward.weight}"
        self.backward.append(f"{c}.backward({arguments}, {{{', '.join(results.values())}}}, scratch);")

    @add.register
    def _indexed_bias(self, op: ops.RescaleBiasGradient) -> None:
        self.backward.append(f"{op.connection}_biases.gradient(w, d_{op.target}, t, {gradient_of(op.gradient)});")

    @add.register
    def _wired_weight_gradient(self, op: WiredWeightGradient) -> None:
        arguments = f"{op.source.buffer}, {op.source.delay}, d_{op.target}, t, {gradient_of(op.gradient)}"
        self.backward.append(f"{op.connection}.weight_gradient(w, {arguments}, scratch);")

    @add.register
    def _wired_input_gradient(self, op: WiredInputGradient) -> None:
        c, adjoint = op.connection, f"d_{op.source.buffer}, {op.source.delay}"
        if self.storage.reads_lists(op):
            self.backward.append(f"{c}.input_gradient(w, {op.source.buffer}, d_{op.target}, t, {adjoint}, scratch);")
        elif is_maximum(op):
            self.layout.append(f"{c}.keep(training ? segment : 0, batch);")
            self.backward.append(f"{c}.input_gradient(w, d_{op.target}, t, {adjoint});")
        else:
            self.backward.append(f"{c}.input_gradient(w, d_{op.target}, t, {self.weights[c]}, {adjoint});")


def is_large(storage: SequenceStorage, op: ops.DenseInputGradient) -> bool:
    """Return whether backward products read the weight without a copy if there are checkpoints."""
    return storage.precision != "bfloat16" and 4 * storage.size(op.weight) > COPIED


def to_earlier_step(source: ops.BufferValue, statement: str) -> Statement:
    """Return a backward statement that adds to an earlier step, guarded by the condition that this step exists."""
    return Guarded(f"t >= {source.delay}", statement) if source.delay else statement


def earlier_step(source: ops.BufferValue) -> str:
    """Return the C++ expression of the step of `source` that is read at step ``t``."""
    return f"t - {source.delay}" if source.delay else "t"


def gradient_of(name: str) -> str:
    """Return the C++ expression of a worker's own gradient."""
    return f"{name.removeprefix('d_')}.gradient(w.index)"
