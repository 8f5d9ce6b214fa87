"""The work of kernels in a time step: for each population the sums that reach it, forward and backward."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from snnc.backends.codegen.names import comment_text
from snnc.backends.cuda.kernels.copies import HALVES, Kind, WeightCopy
from snnc.backends.cuda.kernels.equations import backward_lines, forward_lines
from snnc.backends.cuda.kernels.neurons import NeuronStruct, Sum, backward_struct, forward_struct
from snnc.backends.cuda.kernels.tables import FEW, ProgramTables, Table, by, choices_by_source, columns
from snnc.backends.cuda.schedule.schedule import Feedback, KernelOrder
from snnc.backends.native.adjoint import GivenAdjoint
from snnc.backends.native.storage import SequenceStorage, is_maximum
from snnc.backends.native.tables import Wires, wires_of
from snnc.compiler.ir.arrays.windows import Windows
from snnc.compiler.ir.plan import Precision
from snnc.compiler.ir.step_operations import (
    AddScaled,
    Arrival,
    BufferValue,
    Convolve,
    ConvolveInputGradient,
    DenseInputGradient,
    DenseProduct,
    Fill,
    InputGradient,
    NeuronAdjoint,
    NeuronStep,
    OneToOneWeightGradient,
    Record,
    RecordAdjoint,
    Rescale,
    RescaleBiasGradient,
    RescaleWeightGradient,
    SparseProduct,
    SparseWeightGradient,
)
from snnc.compiler.ir.step_program import PopulationInfo

WiredGradient: TypeAlias = OneToOneWeightGradient | SparseWeightGradient | RescaleWeightGradient | RescaleBiasGradient


@dataclass(frozen=True)
class StepPhase:
    """A population's part of a step: `sums` for a tile of samples, then `lines` for each of them."""

    name: str
    comment: str
    size: int
    sums: tuple[str, ...]
    lines: tuple[str, ...]


@dataclass(frozen=True)
class WholeSum:
    """Input of a population's port from outside its component, for all steps at once.

    Attributes
    ----------
    name
        Of its kernel.
    comment, size
        Of the population, and its neurons.
    to
        The buffer that it fills.
    lines
        Statements for a tile of samples at step ``t``.
    """

    name: str
    comment: str
    size: int
    to: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class NearWeight:
    """A matrix [rows][columns]; a block may keep its own neurons' columns in shared memory.

    Attributes
    ----------
    name
        Of the ``Near`` in ``Net``.
    matrix
        C++ expression of the matrix in the device's memory.
    phase
        The population whose warps read it, a column for each neuron.
    rows, columns
        Its size.
    back
        Whether they do so in the backward pass.
    fragments
        Whether it is a copy of 16 bits, a row of pairs for each neuron.
    """

    name: str
    matrix: str
    phase: str
    rows: int
    columns: int
    back: bool
    fragments: bool = False

    @property
    def fetched(self) -> str:
        """Beginning of the call that loads it into shared memory."""
        if self.fragments:
            return f"fetch_fragments(net.{self.name}, {self.matrix}, half_pairs({self.rows})"
        return f"fetch<{self.columns}>(net.{self.name}, {self.matrix}, {self.rows}"

    @property
    def place(self) -> str:
        """Its allocation: its neurons, and words of a chunk of them."""
        words = f"LANES * (half_pairs({self.rows}) + APART)" if self.fragments else f"LANES * {self.rows}"
        return f"{{&net.{self.name}, {self.columns}, {words}}}"

    @property
    def seen(self) -> str:
        """Expression with which a warp reads it."""
        if self.fragments:
            return f"fragments_of(net.{self.name}, {self.matrix}, half_pairs({self.rows}), item)"
        return f"columns_of(net.{self.name}, {self.matrix}, {self.columns}, item)"


@dataclass(frozen=True)
class ConnectionCode:
    """C++ of the tables of a connection: entries by target, weights ("": it has none), and each target's bias where biases are shared."""

    by_target: str
    weight: str = ""
    bias_of: str | None = None


@dataclass
class ConnectionMembers:
    """The kernels' data of connections: members of ``Net``, their initialisation, copies of dense weights by name."""

    fields: list[str] = field(default_factory=list)
    binding: list[str] = field(default_factory=list)
    copies: dict[str, WeightCopy] = field(default_factory=dict)
    near: list[NearWeight] = field(default_factory=list)


class Steps:
    """Writes the phases of a program.

    Parameters
    ----------
    storage
        Storage of the program's buffers.
    precision
        ``"bfloat16"``: of the factors of dense backward products and of deltas; ``"float16"``: of forward products and of what is kept of
        the past too.
    """

    def __init__(self, storage: SequenceStorage, precision: Precision = "float32") -> None:
        self.storage = storage
        self.half = HALVES[precision]
        """C++ type of numbers of 16 bits."""
        self.rounds_forward = precision == "float16"
        """Whether forward products and the past are rounded too: with the 8 bits of a bfloat16 other neurons would fire."""
        self.program = storage.program
        self.schedule = KernelOrder(storage.program)
        self.tables = ProgramTables()
        self.bound = ConnectionMembers()
        self._wires: dict[str, Wires] = {}
        self._weights: dict[str, str] = {}

    # ---- forward -----------------------------------------------------------------------------------------------------

    def neuron_step(self, population: str) -> NeuronStep:
        """The forward operation of a population."""
        return next(op for op in self.program.forward if isinstance(op, NeuronStep) and op.population == population)

    def neuron_adjoint(self, population: str) -> NeuronAdjoint:
        """The backward operation of a population."""
        return next(op for op in self.program.backward if isinstance(op, NeuronAdjoint) and op.population == population)

    def forward_struct(self, population: str) -> NeuronStruct:
        """The neuron of a population outside of feedbacks."""
        op, info = self.neuron_step(population), self.population(population)
        sums = [self._outside(current) for current in op.currents]
        return forward_struct(self.program, info, op, self.past(op), sums, self.neurons(info.id))

    def _outside(self, current: str) -> Sum:
        """Expression with which a neuron reads its current's input from outside."""
        if self.arrivals(current, outside=True):
            return Sum(f"c_{current}")
        biases = self.biases(current)
        return Sum(constant=" + ".join(f"net.{bias}[n]" for bias in biases) if biases else None)

    def arrivals(self, current: str, *, outside: bool) -> list[Arrival]:
        """Inputs of a current, from outside its component or from within."""
        arriving = [op for op in self.program.forward if isinstance(op, Arrival) and op.target == current]
        return [op for op in arriving if self.schedule.outside(op) == outside]

    def own_sum(
        self, name: str, population: str, to: str, ops: Sequence[Arrival | RecordAdjoint | InputGradient], *, first: bool
    ) -> WholeSum:
        """A network-specific kernel that adds inputs from outside, for all steps at once.

        Parameters
        ----------
        name
            Of the kernel.
        population, to
            The target population, and the member of ``Net`` that holds the sum.
        ops
            What comes.
        first
            Nothing is there yet.
        """
        info = self.population(population)
        arriving = [op for op in ops if isinstance(op, Arrival)]
        lines = [f"for (int s = 0; s < item.samples; ++s) item.sum(0, s) = net.{to}.row(t, item.sample + s)[item.column];"]
        if first:
            lines = [self._start(arriving[0].target)] if arriving else ["for (int s = 0; s < TILE; ++s) item.sum(0, s) = 0.0f;"]
        for op in ops:
            lines += self._arrival(op, 0) if isinstance(op, Arrival) else self._guarded(op, 0)
        return WholeSum(name, self._comment(info), self.neurons(info.id), to, tuple(lines))

    def feedback_forward(self, component: Feedback) -> list[StepPhase]:
        """Phases of the populations of a feedback."""
        found = []
        for population in component.populations:
            op, info = self.neuron_step(population), self.population(population)
            sums = [line for port, current in enumerate(op.currents) for line in self._arriving(port, current)]
            found.append(self._phase(info, sums, forward_lines(self.program, info, op, self.past(op))))
        return found

    def biases(self, current: str) -> tuple[str, ...]:
        """Initial value of a current."""
        return next((op.biases for op in self.program.forward if isinstance(op, Fill) and op.target == current), ())

    def _start(self, current: str, port: int = 0) -> str:
        start = " + ".join(f"net.{bias}[item.column]" for bias in self.biases(current)) or "0.0f"
        return f"for (int s = 0; s < TILE; ++s) item.sum({port}, s) = {start};"

    def _arriving(self, port: int, current: str) -> list[str]:
        if self.arrivals(current, outside=True):
            before = f"net.c_{current}.row(t, item.sample + least(s, item.samples - 1))[item.column]"
            lines = [f"for (int s = 0; s < TILE; ++s) item.sum({port}, s) = {before};"]
        else:
            lines = [self._start(current, port)]
        return lines + [line for op in self.arrivals(current, outside=False) for line in self._arrival(op, port)]

    def _arrival(self, op: Arrival, port: int) -> list[str]:
        each = f"for (int s = 0; s < item.samples; ++s) item.sum({port}, s) += "
        row = f"net.{op.source.buffer}.values({_step(op.source, back=False)}, item.sample + s)"
        if isinstance(op, DenseProduct):
            return self._dense(op, port)
        if isinstance(op, Convolve):
            bias = f" + net.{op.bias}[item.column / {_positions(op.windows)}]" if op.bias is not None else ""
            return [f"{each}window_sum({self.windows(op)}, item.column, {row}, net.{op.weight}){bias};"]
        tables = self.connection(op)
        if is_maximum(op):
            return [
                f"for (int s = 0; s < item.samples; ++s) {{ const auto values = {row}; "
                f"item.sum({port}, s) += values[largest({tables.by_target}, item.column, values)]; }}"
            ]
        bias = f" + net.{op.bias}[{tables.bias_of}[item.column]]" if isinstance(op, Rescale) and tables.bias_of is not None else ""
        return [f"{each}wired_sum({tables.by_target}, item.column, {row}, {tables.weight}){bias};"]

    def _dense(self, op: DenseProduct, port: int) -> list[str]:
        outputs, inputs = self.program.buffers[op.weight].shape
        step = _step(op.source, back=False)
        row = f"net.{op.source.buffer}.row({step}, item.sample)"
        spikes = self.spikes(op.source.buffer)
        if not self.rounds_forward and spikes:
            return [f"add_chosen<TILE>(item, {port}, {row}, {inputs}, {self._near(op, inputs, outputs)}, warp);"]
        if not self.rounds_forward:
            return _product(port, f"{{{row}, {inputs}, 1}}", inputs, self._near(op, inputs, outputs))
        whole = self._copy(op.weight, "forward16")
        if not spikes:
            samples = f"net.{op.source.buffer}.samples({step}, item.sample)"
            far = f"fragments_of(Near(), {whole}, half_pairs({inputs}), item)"
            return [f"add_half_product<Half, TILE>(item, {port}, {samples}, {inputs}, {far});"]
        chosen = self._copy(op.weight, "rows16")
        return [f"add_half_spikes<Half, TILE>(item, {port}, {row}, {inputs}, {chosen}, {outputs}, {whole}, warp);"]

    # ---- backward ----------------------------------------------------------------------------------------------------

    def backward_struct(self, population: str) -> NeuronStruct:
        """The adjoint of the neuron of a population outside of feedbacks."""
        op, info = self.neuron_adjoint(population), self.population(population)
        sums = [self._outside_adjoint(output) for output in op.outputs]
        return backward_struct(self.program, info, op, self.past(op), self._short(op), sums, self.neurons(info.id))

    def returns(self, output: str, *, outside: bool) -> list[RecordAdjoint | InputGradient]:
        """Gradients of an output, from outside its component or from within."""
        coming = [op for op in self.program.backward if isinstance(op, RecordAdjoint | InputGradient) and op.source.buffer == output]
        return [op for op in coming if (isinstance(op, RecordAdjoint) or self.schedule.returns_from_outside(op)) == outside]

    def _outside_adjoint(self, output: str) -> Sum:
        """How a neuron reads what comes back to its output from outside: a record's adjoint where it is, other sums of a buffer."""
        coming = self.returns(output, outside=True)
        if not coming:
            return Sum()
        if len(coming) > 1 or not isinstance(coming[0], RecordAdjoint):
            return Sum(f"a_{output}")
        return Sum(f"d_{coming[0].target}", coming[0].source.delay)

    def summed_adjoint(self, output: str) -> bool:
        """Whether an output's gradients from outside are summed in a separate buffer."""
        coming = self.returns(output, outside=True)
        return len(coming) > 1 or any(not isinstance(op, RecordAdjoint) for op in coming)

    def feedback_backward(self, component: Feedback) -> list[StepPhase]:
        """Phases of the populations of a feedback that have an adjoint."""
        found = []
        for population in component.populations:
            if not self.schedule.learns(population):
                continue
            op, info = self.neuron_adjoint(population), self.population(population)
            sums = [line for port, output in enumerate(op.outputs) for line in self._coming_back(port, output)]
            lines = backward_lines(self.program, info, op, self.past(op), self._short(op), lambda gradient: f"{gradient}_sums")
            found.append(self._phase(info, sums, lines))
        return found

    def _short(self, op: NeuronAdjoint) -> set[str]:
        return {current for current in op.currents if self.rounds_delta(current)}

    def _coming_back(self, port: int, output: str) -> list[str]:
        if not self.summed_adjoint(output):
            return self._returning(port, [*self.returns(output, outside=True), *self.returns(output, outside=False)])
        before = f"net.a_{output}.row(t, item.sample + least(s, item.samples - 1))[item.column]"
        lines = self._returning(port, self.returns(output, outside=False))
        return [f"for (int s = 0; s < TILE; ++s) item.sum({port}, s) = {before};", *lines[1:]]

    def _returning(self, port: int, coming: Sequence[RecordAdjoint | InputGradient]) -> list[str]:
        lines = [f"for (int s = 0; s < TILE; ++s) item.sum({port}, s) = 0.0f;"]
        return lines + [line for op in coming for line in self._guarded(op, port)]

    def _guarded(self, op: RecordAdjoint | InputGradient, port: int) -> list[str]:
        """Gradients at a step; nothing comes from after the sequence."""
        lines = self._return(op, port)
        if not op.source.delay:
            return lines
        return [f"if (t + {op.source.delay} < run.steps + run.after) {{", *(f"  {line}" for line in lines), "}"]

    def _return(self, op: RecordAdjoint | InputGradient, port: int) -> list[str]:
        step = _step(op.source, back=True)
        each = f"for (int s = 0; s < item.samples; ++s) item.sum({port}, s) += "
        delta = f"net.d_{op.target}.row({step}, item.sample + s)"
        if isinstance(op, RecordAdjoint):
            return [f"{each}{delta}[item.column];"]
        if isinstance(op, DenseInputGradient):
            outputs, inputs = self.program.buffers[op.weight].shape
            if self.half is not None:
                left = f"net.d_{op.target}.samples({step}, item.sample)"
                return [f"add_half_product<Half, TILE>(item, {port}, {left}, {outputs}, {self._near_back(op, outputs, inputs)});"]
            left = f"{{net.d_{op.target}.row({step}, item.sample), {outputs}, 1}}"
            return _product(port, left, outputs, self._near_back(op, outputs, inputs))
        if isinstance(op, ConvolveInputGradient):
            return [f"{each}window_back({self.windows(op)}, item.column, {delta}, net.{op.weight});"]
        arrival = self.arrival(op.connection)
        tables, by_source = self.connection(arrival), self.by_source(arrival)
        if is_maximum(op):
            values = f"net.{op.source.buffer}.values(t, item.sample + s)"
            return [f"{each}chosen_sum({tables.by_target}, {by_source}, item.column, {values}, {delta});"]
        return [f"{each}wired_sum({by_source}, item.column, {delta}, {tables.weight});"]

    # ---- shared ------------------------------------------------------------------------------------------------------

    def past(self, op: NeuronStep | NeuronAdjoint) -> dict[str, str]:
        """State buffers to those that keep their past in 16 bits, and saved ones to themselves, where a backward pass reads them."""
        kernel = self.population(op.population).kernel
        adjoints = {o.population for o in self.program.backward if isinstance(o, NeuronAdjoint)}
        if not self.rounds_forward or self.program.optimizer is None or op.population not in adjoints:
            return {}
        kept = {name: f"{name}_past" for state, name in zip(kernel.states, op.states, strict=True) if state in kernel.history}
        return kept | {name: name for name in op.saved}

    def rounds_delta(self, current: str) -> bool:
        """Whether deltas of a current are kept as bfloat16: not where they are shown as they are."""
        relays = self.program.loss.relays if isinstance(self.program.loss, GivenAdjoint) else ()
        owner = next(op.population for op in self.program.forward if isinstance(op, NeuronStep) and current in op.currents)
        return self.half is not None and self.population(owner).label not in relays

    def population(self, id_: str) -> PopulationInfo:
        """The population of an id."""
        return next(p for p in self.program.populations if p.id == id_)

    def arrival(self, connection: str) -> Arrival:
        """The forward operation of a connection."""
        return next(op for op in self.program.forward if isinstance(op, Arrival) and op.connection == connection)

    def spikes(self, buffer: str) -> bool:
        """Whether a buffer is kept as bits."""
        return self.program.buffers[buffer].kind == "spikes"

    def wires(self, op: Arrival) -> Wires:
        """The entries of a connection."""
        if op.connection not in self._wires:
            self._wires[op.connection] = wires_of(op, self.storage)
        return self._wires[op.connection]

    def connection(self, op: Arrival) -> ConnectionCode:
        """The tables of a connection that has some."""
        wires, name = self.wires(op), f"{op.connection}_by_target"
        if is_maximum(op):
            self._bind_wires(name, lambda: f"{{{self.tables.add(wires.begin.reshape(-1, 1))}, {self.tables.add(wires.entries)}}}")
            return ConnectionCode(f"net.{name}")
        source, target, weight = columns(wires)
        self._bind_wires(name, lambda: self.tables.wires(by(target, self.storage.size(op.target), source, weight)))
        bias_of = None
        if isinstance(op, Rescale) and op.bias is not None and wires.bias is not None:
            bias_of = f"net.{op.connection}_bias_of"
            self._bind_table(f"{op.connection}_bias_of", wires.bias)
        return ConnectionCode(f"net.{name}", self._weight(op), bias_of)

    def by_source(self, op: Arrival) -> str:
        """The entries of a connection sorted by source; of a maximum the targets of each."""
        wires, sources = self.wires(op), self.storage.size(op.source.buffer)
        if is_maximum(op):
            return self._bind_wires(f"{op.connection}_by_source", lambda: self.tables.wires(choices_by_source(wires, sources)))
        source, target, weight = columns(wires)
        return self._bind_wires(f"{op.connection}_by_source", lambda: self.tables.wires(by(source, sources, target, weight)))

    def windows_apart(self, op: Arrival) -> tuple[bool, bool]:
        """Whether no two windows of a maximum share a source, and whether all sources are in one."""
        entries = self.wires(op).entries.ravel()
        return len(np.unique(entries)) == len(entries), len(np.unique(entries)) == self.storage.size(op.source.buffer)

    def by_parameter(self, op: WiredGradient) -> tuple[str, bool]:
        """The entries of a connection sorted by the weight (or bias) that learns, and whether each has few."""
        wires, numbers = self.wires(self.arrival(op.connection)), max(1, self.storage.size(op.gradient))
        if isinstance(op, RescaleBiasGradient):
            assert wires.bias is not None, "a bias has a table"
            targets = np.arange(len(wires.bias), dtype=np.uint32)
            found, name = by(wires.bias, numbers, targets, targets), f"{op.connection}_by_bias"
        else:
            ends = columns(wires)
            found, name = by(ends[2], numbers, ends[0], ends[1]), f"{op.connection}_by_weight"
        return self._bind_wires(name, lambda: self.tables.wires(found)), found.most <= FEW

    def windows(self, op: Convolve | ConvolveInputGradient) -> str:
        """C++ expression of a convolution's windows."""
        return windows_expression(op.windows, op.groups, self.program.buffers[op.weight].shape[0])

    def records(self) -> list[dict[str, object]]:
        """Code that copies the records of all steps."""
        found: list[dict[str, object]] = []
        for op in self.program.forward:
            if isinstance(op, Record):
                label = next(o.label for o in self.program.outputs if o.record == op.target)
                line = f"net.{op.target}.row(t, item.sample)[item.column] = "
                line += f"net.{op.source.buffer}.values({_step(op.source, back=False)}, item.sample)[item.column];"
                found.append(
                    {"name": op.target, "comment": f"Output {comment_text(label)}.", "size": self.storage.size(op.target), "line": line}
                )
        return found

    def _copy(self, weight: str, kind: Kind) -> str:
        """C++ expression of a copy of a dense weight."""
        outputs, inputs = self.program.buffers[weight].shape
        copy = WeightCopy(weight, kind, inputs, outputs)
        self.bound.copies[copy.name] = copy
        return f"net.{copy.name}"

    def _near(self, op: DenseProduct, inputs: int, outputs: int) -> str:
        """C++ expression of the columns of a weight [inputs][outputs], in shared memory or not; never outside the time loop."""
        if self.schedule.outside(op):
            return f"Columns{{net.{op.weight}, {outputs}, item.column}}"
        reader = next(o.population for o in self.program.forward if isinstance(o, NeuronStep) and op.target in o.currents)
        return self._seen(NearWeight(f"{op.connection}_near", f"net.{op.weight}", reader, inputs, outputs, back=False))

    def _near_back(self, op: DenseInputGradient, outputs: int, inputs: int) -> str:
        """The same of its copy [outputs][inputs]."""
        reader = next(o.population for o in self.program.backward if isinstance(o, NeuronAdjoint) and op.source.buffer in o.outputs)
        half = self.half is not None
        matrix = self._copy(op.weight, "backward16" if half else "back")
        if self.schedule.returns_from_outside(op):
            return f"fragments_of(Near(), {matrix}, half_pairs({outputs}), item)" if half else f"Columns{{{matrix}, {inputs}, item.column}}"
        return self._seen(NearWeight(f"{op.connection}_near_back", matrix, reader, outputs, inputs, back=True, fragments=half))

    def _seen(self, near: NearWeight) -> str:
        if near not in self.bound.near:
            self.bound.near.append(near)
            self.bound.fields.append(f"Near {near.name};")
        return near.seen

    def _phase(self, info: PopulationInfo, sums: Sequence[str], lines: Sequence[str]) -> StepPhase:
        return StepPhase(info.id, self._comment(info), self.neurons(info.id), tuple(sums), tuple(lines))

    def _comment(self, info: PopulationInfo) -> str:
        return f"Population {comment_text(info.label)}: {comment_text(info.model.name)}"

    def neurons(self, population: str) -> int:
        """Neurons of a population."""
        return math.prod(self.population(population).shape)

    def _weight(self, op: Arrival) -> str:
        weight = op.weight if isinstance(op, SparseProduct | AddScaled | Rescale) else None
        if weight is not None:
            return f"net.{weight}"
        constants = self.wires(op).constants
        assert constants is not None, "a connection without a parameter has constants"
        name = f"{op.connection}_constants"
        if op.connection not in self._weights:
            self._weights[op.connection] = name
            self.bound.fields.append(f"const float *{name};")
            table = self.tables.add(constants.astype("<f4").view("<u4").reshape(-1, 1))
            self.bound.binding.append(f"net.{name} = reinterpret_cast<const float *>({table});")
        return f"net.{name}"

    def _bind_wires(self, name: str, made: Callable[[], str]) -> str:
        """C++ expression of wires, which are bound at their first use."""
        if f"Wires {name};" not in self.bound.fields:
            self.bound.fields.append(f"Wires {name};")
            self.bound.binding.append(f"net.{name} = {made()};")
        return f"net.{name}"

    def _bind_table(self, name: str, table: Table) -> None:
        if f"const std::uint32_t *{name};" not in self.bound.fields:
            self.bound.fields.append(f"const std::uint32_t *{name};")
            self.bound.binding.append(f"net.{name} = {self.tables.add(table.reshape(-1, 1))};")


def windows_expression(windows: Windows, groups: int, outputs: int) -> str:
    """``Windows{…}`` of a convolution; a single axis is the second."""
    pairs = (windows.size, windows.output, windows.kernel, windows.stride, [before for before, _ in windows.padding], windows.dilation)
    numbers = [str(windows.channels), str(outputs), str(groups)]
    for pair, missing in zip(pairs, (1, 1, 1, 1, 0, 1), strict=True):
        first, second = (missing, pair[0]) if len(pair) == 1 else (pair[0], pair[1])
        numbers.append(f"{{{first}, {second}}}")
    return f"Windows{{{', '.join(numbers)}}}"


def _positions(windows: Windows) -> int:
    found = 1
    for axis in windows.output:
        found *= axis
    return found


def _step(source: BufferValue, *, back: bool) -> str:
    """The step that is read: an earlier one of a source, a later one of an adjoint."""
    return f"t {'+' if back else '-'} {source.delay}" if source.delay else "t"


def _product(port: int, left: str, depth: int, columns: str) -> list[str]:
    return [
        "{",
        "  float sums[TILE] = {};",
        f"  const Columns matrix = {columns};",
        f"  add_product<TILE>(sums, {left}, item.samples, {depth}, matrix.data, matrix.stride, matrix.column, warp);",
        "  UNROLL(8)",
        f"  for (int s = 0; s < TILE; ++s) item.sum({port}, s) += sums[s];",
        "}",
    ]
