"""Collapse of a linear readout into a single product in training, if the loss is the cross entropy of its mean membrane potential.

The sum of the readout's outputs over time is linear in the spikes. Therefore the spikes of each source neuron are summed, each multiplied
by a factor that depends on its step, and the weight matrix is multiplied once by these sums (``*_counts``). In the backward pass, the
transposed matrix is multiplied once, and the result is scaled by the factor of each step. Outside training, the readout runs step by step.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from snnc.backends.cpu.operations import Statements, earlier_step, gradient_of, to_earlier_step
from snnc.backends.native.row_buffers import ONE, RowBuffer, padded
from snnc.backends.native.storage import SequenceStorage
from snnc.compiler.ir import step_operations as ops
from snnc.compiler.losses import CrossEntropyMeanMembrane
from snnc.compiler.lowering.spike_limits import without_returns
from snnc.compiler.neurons.expression import Call, Expression, Number, Symbol, symbols
from snnc.compiler.neurons.kernel import Kernel


@dataclass(frozen=True)
class Collapse:
    """The collapsed readout of a training step, as its forward operations."""

    fill: ops.Fill
    products: tuple[ops.DenseProduct, ...]
    step: ops.NeuronStep
    record: ops.Record

    @property
    def current(self) -> str:
        """Buffer of the readout's current."""
        return self.fill.target

    def contains(self, op: ops.ForwardOp | ops.BackwardOp) -> bool:
        """Return whether `op` is an operation of the readout, forward or backward."""
        match op:
            case ops.Fill() | ops.DenseProduct() | ops.BiasGradient() | ops.DenseInputGradient() | ops.DenseWeightGradient():
                return op.target == self.current
            case ops.NeuronStep() | ops.NeuronAdjoint():
                return op.population == self.step.population
            case ops.Record() | ops.RecordAdjoint():
                return op.source == self.record.source
        return False


def collapsed(storage: SequenceStorage) -> Collapse | None:
    """Return the readout of `storage.program` if it can be collapsed, else None."""
    program = storage.program
    if program.optimizer is None or program.truncate or not isinstance(program.loss, CrossEntropyMeanMembrane):
        return None
    target = next(o.record for o in program.outputs if o.id == program.loss_output)
    record = next(op for op in program.forward if isinstance(op, ops.Record) and op.target == target)
    step = next((op for op in program.forward if isinstance(op, ops.NeuronStep) and record.source.buffer in op.outputs), None)
    if step is None or record.source.delay or len(step.currents) != 1 or len(step.outputs) != 1 or step.saved:
        return None
    read = [op for op in program.forward if not isinstance(op, ops.Fill | ops.NeuronStep) and op.source.buffer in step.outputs]
    kernel = program.population(step.population).kernel
    plain = all(program.buffers[a].shape == () for a in step.parameters)
    if read != [record] or not plain or kernel.learnable or not is_linear(kernel):
        return None
    into = [op for op in program.forward if not isinstance(op, ops.NeuronStep | ops.Record) and op.target == step.currents[0]]
    fills, products = [op for op in into if isinstance(op, ops.Fill)], [op for op in into if isinstance(op, ops.DenseProduct)]
    counted = all(program.buffers[op.source.buffer].kind == "spikes" and storage.stored(op.source.buffer).listed for op in products)
    # If dropped spikes of a source receive no gradient, the readout runs step by step: its collapsed adjoint goes to all neurons.
    all_receive = without_returns(program).isdisjoint(op.source.buffer for op in products)
    if not all_receive or len(fills) != 1 or not products or len(fills) + len(products) != len(into) or not counted:
        return None
    return Collapse(fills[0], tuple(products), step, record)


def add_collapsed(collapse: Collapse, statements: Statements) -> None:
    """Add the statements that replace the steps of the readout in training."""
    storage, step = statements.storage, collapse.step
    output, record = step.outputs[0], collapse.record.target
    response, mean = f"{step.population}_response", f"{step.population}_mean"
    statements.members += [f"PerWorker<StepResponse> {response};", f"Rows {mean}{{{storage.size(output)}, 0}};"]
    statements.layout.append(f"{response}.resize(workers.size());")
    statements.row_buffers.append(RowBuffer(mean, storage.size(output), ONE, ONE))
    statements.readout = {"collapse": collapse, "step": statements.neuron_call(step), "width": padded(storage.size(output))}
    for op in collapse.products:
        counts = f"{op.connection}_counts"
        statements.members.append(f"Source {counts}{{{storage.size(op.source.buffer)}, 0}};")
        statements.row_buffers.append(RowBuffer(f"{counts}.rows", storage.size(op.source.buffer), ONE, ONE))
    statements.scored = {"rows": mean, "steps": "1"}
    statements.start.append(f"scale(w, d_{record}, 0, 1.0f / static_cast<float>(steps));")


def add_collapsed_adjoint(collapse: Collapse, op: ops.BackwardOp, statements: Statements) -> None:
    """Add the statements that replace `op`, a backward operation of the readout, in training."""
    response, adjoint = f"{collapse.step.population}_response[mine]", f"d_{collapse.record.target}"
    match op:
        case ops.DenseWeightGradient():
            arguments = f"w, {op.connection}_counts, 0, {adjoint}, 0, 1, {gradient_of(op.gradient)}, {statements.writes(op)}"
            statements.start.append(f"{op.connection}.weight_gradient({arguments}, scratch);")
        case ops.BiasGradient():
            statements.start += [
                f"copy_step(w, {adjoint}, 0, d_{collapse.current}, 0);",
                f"scale(w, d_{collapse.current}, 0, {response}.total);",
                f"bias_gradient(w, d_{collapse.current}, 0, 1, {gradient_of(op.gradient)});",
            ]
        case ops.DenseInputGradient():
            source, counts = op.source, f"{op.connection}_counts"
            statements.members.append(f"Rows d_{counts}{{{statements.storage.size(source.buffer)}, 0}};")
            statements.row_buffers.append(RowBuffer(f"d_{counts}", statements.storage.size(source.buffer), ONE, ONE))
            statements.store_packed(op)
            statements.start.append(f"d_{counts}.clear(w, 0);")
            statements.start.append(f"{op.connection}.input_gradient(w, {adjoint}, 0, 1, d_{counts}, 0, {op.weight}, scratch);")
            weight = f"{response}.sums[static_cast<std::size_t>(steps - 1 - t)]"
            add = f"add_scaled(w, d_{counts}, {weight}, d_{source.buffer}, {earlier_step(source)});"
            statements.backward.append(to_earlier_step(source, add))


def is_linear(kernel: Kernel) -> bool:
    """Return whether states and outputs are linear in states and inputs, with constant coefficients."""
    linear = {*kernel.inputs, *(f"{s}_prev" for s in kernel.states)}
    for assignment in kernel.forward:
        if _linear(assignment.value, linear):
            linear.add(assignment.target)
        elif not linear.isdisjoint(symbols(assignment.value)):
            return False
    return linear.issuperset((*kernel.states, *kernel.outputs))


def _linear(expression: Expression, names: Collection[str]) -> bool:
    """Return whether `expression` is a linear combination of `names` with constant coefficients."""
    constant = not set(symbols(expression)) & set(names)
    match expression:
        case Symbol(name):
            return name in names
        case Number(value):
            return value == 0
        case Call("add" | "sub", (left, right)):
            return _linear(left, names) and _linear(right, names)
        case Call("neg", (operand,)):
            return _linear(operand, names)
        case Call("mul", (left, right)) if not constant:
            sides = [not set(symbols(side)) & set(names) for side in (left, right)]
            return any(sides) and _linear(left if sides[1] else right, names)
        case Call("div", (left, right)):
            return _linear(left, names) and not set(symbols(right)) & set(names)
    return False
