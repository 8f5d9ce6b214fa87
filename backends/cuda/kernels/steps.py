"""Code of kernels in a time step: for each population, its input sums and equations, forward and backward.

A *component* is a population, or several that depend on each other (:mod:`snnc.backends.cuda.schedule.schedule`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from snnc.backends.codegen.names import comment_text
from snnc.backends.cuda.kernels.connections import Connections, SharedWeight
from snnc.backends.cuda.kernels.copies import HALVES
from snnc.backends.cuda.kernels.equations import Body, backward_body, forward_body
from snnc.backends.cuda.kernels.limits import Limits
from snnc.backends.cuda.kernels.neurons import NeuronStruct, Sum, backward_struct, forward_struct
from snnc.backends.cuda.kernels.sums import Term, add_each, add_largest, add_product, begin, from_later, to_sent
from snnc.backends.cuda.schedule.schedule import Feedback, KernelOrder
from snnc.backends.native.storage import SequenceStorage, is_maximum
from snnc.compiler.ir import step_operations as ops
from snnc.compiler.ir.plan import Precision
from snnc.compiler.ir.step_program import PopulationInfo
from snnc.compiler.lowering.statistics import stored_adjoints


@dataclass(frozen=True)
class StepPhase:
    """A population's part of a step: `sums` for a tile of samples (:mod:`snnc.backends.cuda.kernels.sums`), then `body` for each sample."""

    name: str
    comment: str
    size: int
    """Number of neurons of the population."""
    sums: tuple[Term, ...]
    body: Body


@dataclass(frozen=True)
class OutsideSum:
    """A kernel that adds one input of a current, or one gradient of an output, from outside its component, for all steps at once."""

    name: str
    comment: str
    size: int
    """Number of neurons of the population."""
    to: str
    """Buffer that the kernel fills."""
    terms: tuple[Term, ...]
    """Terms of the sum, for a tile of samples at step ``t``."""


class Steps:
    """Generates the phases and kernels of a program's populations.

    Precision ``"tf32"`` rounds the weights of forward products of spikes outside the time loop to 11 significant bits. ``"bfloat16"``
    stores deltas and the factors of dense backward products in 16 bits; ``"float16"`` also histories and the factors of forward products.
    """

    def __init__(self, storage: SequenceStorage, precision: Precision = "float32") -> None:
        self.storage = storage
        self.half = HALVES[precision]
        """C++ name of the 16-bit type; None if the precision has none."""
        self.spike_parts = 1 if precision in ("tf32", "float16") else 2
        """Number of 16-bit values into which a weight of a forward product of spikes outside the time loop is split."""
        self.rounds_forward = precision == "float16"
        """Whether forward products and histories are also rounded; with the 8 significant bits of bfloat16, other neurons would fire."""
        self.program = storage.program
        self.schedule = KernelOrder(storage.program)
        self.connections = Connections(storage)
        self.limits = Limits(storage.program)

    # ---- forward -----------------------------------------------------------------------------------------------------

    def neuron_step(self, population: str) -> ops.NeuronStep:
        """Return the forward operation of a population."""
        return next(op for op in self.program.forward if isinstance(op, ops.NeuronStep) and op.population == population)

    def neuron_adjoint(self, population: str) -> ops.NeuronAdjoint:
        """Return the backward operation of a population."""
        return next(op for op in self.program.backward if isinstance(op, ops.NeuronAdjoint) and op.population == population)

    def forward_struct(self, population: str) -> NeuronStruct:
        """Return the struct of a population that is not in a feedback loop."""
        op, info = self.neuron_step(population), self.program.population(population)
        sums = [self._outside(current) for current in op.currents]
        return forward_struct(self.program, info, op, self.half_histories(op), sums, self.neurons(info.id))

    def _outside(self, current: str) -> Sum:
        """Return the input of a current from outside its component, as its neuron reads it."""
        if self.incoming(current, outside=True):
            return Sum(f"c_{current}")
        biases = self.biases(current)
        return Sum(constant=" + ".join(f"net.{bias}[n]" for bias in biases) if biases else None)

    def incoming(self, current: str, *, outside: bool) -> list[ops.ConnectionOp]:
        """Return the operations that add to a current, from outside its component or from within."""
        operations = [op for op in self.program.forward if isinstance(op, ops.ConnectionOp) and op.target == current]
        return [op for op in operations if self.schedule.outside(op) == outside]

    def outside_sum(
        self, name: str, population: str, to: str, op: ops.ConnectionOp | ops.RecordAdjoint | ops.InputGradient, *, first: bool
    ) -> OutsideSum:
        """Return the kernel `name`, which adds an input or a gradient from outside to the member `to` of ``Net``, for all steps at once.

        The `first` input initialises the sum.
        """
        info = self.program.population(population)
        start = begin(0, f"net.{to}.row(t, item.sample + s)[item.column]", "item.samples")
        if first:
            start = self._start(op.target) if isinstance(op, ops.ConnectionOp) else begin(0, "0.0f")
        term = self._input(op, 0) if isinstance(op, ops.ConnectionOp) else self._gradient(op, 0)
        return OutsideSum(name, self._comment(info), self.neurons(info.id), to, (start, term))

    def feedback_forward(self, component: Feedback) -> list[StepPhase]:
        """Return the phases of the populations of a feedback loop."""
        phases = []
        for population in component.populations:
            op, info = self.neuron_step(population), self.program.population(population)
            sums = [term for port, current in enumerate(op.currents) for term in self._inputs(port, current)]
            body = forward_body(self.program, info, op, self.half_histories(op))
            phases.append(StepPhase(info.id, self._comment(info), self.neurons(info.id), tuple(sums), body))
        return phases

    def biases(self, current: str) -> tuple[str, ...]:
        """Return the biases with which a current is initialised."""
        return next((op.biases for op in self.program.forward if isinstance(op, ops.Fill) and op.target == current), ())

    def _start(self, current: str, port: int = 0) -> Term:
        return begin(port, " + ".join(f"net.{bias}[item.column]" for bias in self.biases(current)) or "0.0f")

    def _inputs(self, port: int, current: str) -> list[Term]:
        start = self._start(current, port)
        if self.incoming(current, outside=True):
            start = begin(port, f"net.c_{current}.row(t, item.sample + least(s, item.samples - 1))[item.column]")
        return [start, *(self._input(op, port) for op in self.incoming(current, outside=False))]

    def _input(self, op: ops.ConnectionOp, port: int) -> Term:
        row = f"net.{self.limits.received(op.source.buffer)}.values({step_expression(op.source, back=False)}, item.sample + s)"
        if isinstance(op, ops.DenseProduct):
            return self._dense(op, port)
        if isinstance(op, ops.Convolve):
            bias = f" + net.{op.bias}[item.column / {math.prod(op.windows.output)}]" if op.bias is not None else ""
            return add_each(port, f"window_sum({self.connections.windows(op)}, item.column, {row}, net.{op.weight}){bias}")
        tables = self.connections.by_target(op)
        if is_maximum(op):
            return add_largest(port, row, tables.by_target)
        bias = f" + net.{op.bias}[{tables.bias_of}[item.column]]" if isinstance(op, ops.Rescale) and tables.bias_of is not None else ""
        return add_each(port, f"wired_sum({tables.by_target}, item.column, {row}, {tables.weight}){bias}")

    def _dense(self, op: ops.DenseProduct, port: int) -> Term:
        """Return the term that a dense connection adds to a current, in float32 or from 16-bit copies of its weights."""
        outputs, inputs = self.program.buffers[op.weight].shape
        step = step_expression(op.source, back=False)
        row = f"net.{self.limits.received(op.source.buffer)}.row({step}, item.sample)"
        spikes = self.spikes(op.source.buffer)
        if not self.rounds_forward and spikes:
            return f"add_chosen<TILE>(item, {port}, {row}, {inputs}, {self._columns(op, inputs, outputs)}, warp);"
        if not self.rounds_forward:
            return add_product(port, f"{{{row}, {inputs}, 1}}", inputs, self._columns(op, inputs, outputs))
        fragments = self.connections.copy(op.weight, "forward16")
        if not spikes:
            samples = f"net.{op.source.buffer}.samples({step}, item.sample)"
            weights = f"fragments_of(Near(), {fragments}, half_pairs({inputs}), item)"
            return f"add_half_product<Half, TILE>(item, {port}, {samples}, {inputs}, {weights});"
        rows = self.connections.copy(op.weight, "rows16")
        return f"add_half_spikes<Half, TILE>(item, {port}, {row}, {inputs}, {rows}, {outputs}, {fragments}, warp);"

    # ---- backward ----------------------------------------------------------------------------------------------------

    def backward_struct(self, population: str) -> NeuronStruct:
        """Return the adjoint struct of a population that is not in a feedback loop."""
        op, info = self.neuron_adjoint(population), self.program.population(population)
        sums = [self._outside_adjoint(output) for output in op.outputs]
        return backward_struct(self.program, info, op, self.half_histories(op), self._rounded_deltas(op), sums, self.neurons(info.id))

    def gradients(self, output: str, *, outside: bool) -> list[ops.RecordAdjoint | ops.InputGradient]:
        """Return the operations that add to the adjoint of an output, from outside its component or from within."""
        adding = [op for op in self.program.backward if isinstance(op, ops.RecordAdjoint | ops.InputGradient)]
        to_output = [op for op in adding if op.source.buffer == output]
        return [op for op in to_output if (isinstance(op, ops.RecordAdjoint) or self.schedule.outside(op)) == outside]

    def _outside_adjoint(self, output: str) -> Sum:
        """Return the gradient that an output receives from outside its component; the adjoint of a single record is read in place."""
        if self.summed_adjoint(output):
            return Sum(f"a_{output}")
        records = self.gradients(output, outside=True)
        return Sum(f"d_{records[0].target}", records[0].source.delay) if records else Sum()

    def summed_adjoint(self, output: str) -> bool:
        """Return whether the gradients from outside the component are summed in a separate buffer."""
        adding = self.gradients(output, outside=True)
        return len(adding) > 1 or any(not isinstance(op, ops.RecordAdjoint) for op in adding)

    def feedback_backward(self, component: Feedback) -> list[StepPhase]:
        """Return the phases of the populations of a feedback loop that have an adjoint."""
        phases = []
        for population in component.populations:
            if population not in self.schedule.adjoints:
                continue
            op, info = self.neuron_adjoint(population), self.program.population(population)
            sums = [term for port, output in enumerate(op.outputs) for term in self._gradients(port, output)]
            body = backward_body(self.program, info, op, self.half_histories(op), self._rounded_deltas(op))
            phases.append(StepPhase(info.id, self._comment(info), self.neurons(info.id), tuple(sums), body))
        return phases

    def _rounded_deltas(self, op: ops.NeuronAdjoint) -> set[str]:
        return {current for current in op.currents if self.rounds_delta(current)}

    def _gradients(self, port: int, output: str) -> list[Term]:
        start, operations = begin(port, "0.0f"), self.gradients(output, outside=False)
        if self.summed_adjoint(output):
            start = begin(port, f"net.a_{output}.row(t, item.sample + least(s, item.samples - 1))[item.column]")
        else:
            operations = [*self.gradients(output, outside=True), *operations]
        return [start, *(self._gradient(op, port) for op in operations)]

    def _gradient(self, op: ops.RecordAdjoint | ops.InputGradient, port: int) -> Term:
        """Return the term of a gradient at a step; after the end of the sequence, it is 0."""
        term = self._gradient_at(op, port)
        if isinstance(op, ops.DenseInputGradient) and op.source.buffer in self.limits.masked:
            term = to_sent(port, self.limits.dropped(op.source.buffer), term)
        return from_later(op.source.delay, term) if op.source.delay else term

    def _gradient_at(self, op: ops.RecordAdjoint | ops.InputGradient, port: int) -> Term:
        step = step_expression(op.source, back=True)
        delta = f"net.d_{op.target}.row({step}, item.sample + s)"
        if isinstance(op, ops.RecordAdjoint):
            return add_each(port, f"{delta}[item.column]")
        if isinstance(op, ops.DenseInputGradient):
            outputs, inputs = self.program.buffers[op.weight].shape
            columns = self._transposed_columns(op, outputs, inputs)
            if self.half is not None:
                left = f"net.d_{op.target}.samples({step}, item.sample)"
                return f"add_half_product<Half, TILE>(item, {port}, {left}, {outputs}, {columns});"
            return add_product(port, f"{{net.d_{op.target}.row({step}, item.sample), {outputs}, 1}}", outputs, columns)
        if isinstance(op, ops.ConvolveInputGradient):
            return add_each(port, f"window_back({self.connections.windows(op)}, item.column, {delta}, net.{op.weight})")
        forward = self.connections.operation(op.connection)
        tables, by_source = self.connections.by_target(forward), self.connections.by_source(forward)
        if is_maximum(op):
            values = f"net.{self.limits.received(op.source.buffer)}.values(t, item.sample + s)"
            return add_each(port, f"chosen_sum({tables.by_target}, {by_source}, item.column, {values}, {delta})")
        return add_each(port, f"wired_sum({by_source}, item.column, {delta}, {tables.weight})")

    # ---- shared ------------------------------------------------------------------------------------------------------

    def half_histories(self, op: ops.NeuronStep | ops.NeuronAdjoint) -> dict[str, str]:
        """Map each state buffer that the backward pass reads to its 16-bit history, and each saved buffer to itself; empty if float32."""
        kernel = self.program.population(op.population).kernel
        adjoints = {o.population for o in self.program.backward if isinstance(o, ops.NeuronAdjoint)}
        if not self.rounds_forward or self.program.optimizer is None or op.population not in adjoints:
            return {}
        histories = {name: f"{name}_past" for state, name in zip(kernel.states, op.states, strict=True) if state in kernel.history}
        return histories | {name: name for name in op.saved}

    def rounds_delta(self, current: str) -> bool:
        """Return whether the deltas of a current are stored in 16 bits; deltas that a caller reads are float32."""
        owner = next(op.population for op in self.program.forward if isinstance(op, ops.NeuronStep) and current in op.currents)
        return self.half is not None and owner not in stored_adjoints(self.program)

    def spikes(self, buffer: str) -> bool:
        """Return whether a buffer is stored as bits."""
        return self.program.buffers[buffer].kind == "spikes"

    def records(self) -> list[dict[str, object]]:
        """Return the template data of the kernels that write the records, for all steps."""
        kernels: list[dict[str, object]] = []
        for op in self.program.forward:
            if isinstance(op, ops.Record):
                comment = f"Output {comment_text(next(o.label for o in self.program.outputs if o.record == op.target))}."
                line = f"net.{op.target}.row(t, item.sample)[item.column] = "
                line += f"net.{op.source.buffer}.values({step_expression(op.source, back=False)}, item.sample)[item.column];"
                kernels.append({"name": op.target, "comment": comment, "size": self.storage.size(op.target), "line": line})
        return kernels

    def _columns(self, op: ops.DenseProduct, inputs: int, outputs: int) -> str:
        """Return the C++ expression of the columns of a weight [inputs][outputs], inside the time loop possibly in shared memory."""
        if self.schedule.outside(op):
            return f"Columns{{net.{op.weight}, {outputs}, item.column}}"
        reader = next(o.population for o in self.program.forward if isinstance(o, ops.NeuronStep) and op.target in o.currents)
        weight = SharedWeight(f"{op.connection}_near", f"net.{op.weight}", reader, inputs, outputs, back=False)
        return self.connections.shared(weight)

    def _transposed_columns(self, op: ops.DenseInputGradient, outputs: int, inputs: int) -> str:
        """Return the C++ expression of the columns of a weight's transposed copy, inside the time loop possibly in shared memory."""
        reader = next(o.population for o in self.program.backward if isinstance(o, ops.NeuronAdjoint) and op.source.buffer in o.outputs)
        half = self.half is not None
        matrix = self.connections.copy(op.weight, "backward16" if half else "back")
        if self.schedule.outside(op):
            return f"fragments_of(Near(), {matrix}, half_pairs({outputs}), item)" if half else f"Columns{{{matrix}, {inputs}, item.column}}"
        weight = SharedWeight(f"{op.connection}_near_back", matrix, reader, outputs, inputs, back=True, fragments=half)
        return self.connections.shared(weight)

    def _comment(self, info: PopulationInfo) -> str:
        return f"Population {comment_text(info.label)}: {comment_text(info.model.name)}"

    def neurons(self, population: str) -> int:
        """Return the number of neurons of a population."""
        return math.prod(self.program.population(population).shape)


def step_expression(source: ops.BufferValue, *, back: bool) -> str:
    """Return the C++ expression of the step that is read: an earlier one for a source, a later one for an adjoint."""
    return f"t {'+' if back else '-'} {source.delay}" if source.delay else "t"
