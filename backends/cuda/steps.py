"""What kernels do in a time step: for each population the sums that reach it, forward and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from snnc.backends.cpu.adjoint import GivenAdjoint
from snnc.backends.cpu.storage import Storage, is_maximum
from snnc.backends.cpu.tables import Wires, wires_of
from snnc.backends.cuda.copies import HALVES, Kind, WeightCopy
from snnc.backends.cuda.equations import backward_lines, forward_lines
from snnc.backends.cuda.tables import Tables, by, choices_by_source, columns
from snnc.backends.cuda.wavefront import Edge
from snnc.backends.names import comment_text
from snnc.compiler.plan import Precision
from snnc.compiler.step_operations import (
    Arrival,
    Convolve,
    ConvolveInputGradient,
    Dense,
    DenseInputGradient,
    Fill,
    InputGradient,
    NeuronAdjoint,
    NeuronStep,
    OneToOne,
    Record,
    RecordAdjoint,
    Rescale,
    SparseProduct,
    Value,
)
from snnc.compiler.step_program import PopulationInfo
from snnc.compiler.windows import Windows


@dataclass(frozen=True)
class Phase:
    """A population's part of a step: `sums` for a tile of samples, then `lines` for each of them."""

    name: str
    comment: str
    size: int
    sums: tuple[str, ...]
    lines: tuple[str, ...]


@dataclass(frozen=True)
class NearWeight:
    """A matrix [rows][columns] of which a block may keep its own neurons' columns in its shared memory.

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
        Whether they do on the way back.
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
        """How the call begins that brings it near."""
        if self.fragments:
            return f"fetch_fragments(net.{self.name}, {self.matrix}, half_pairs({self.rows})"
        return f"fetch<{self.columns}>(net.{self.name}, {self.matrix}, {self.rows}"

    @property
    def place(self) -> str:
        """What gives it room: its neurons, and words of a chunk of them."""
        words = f"LANES * (half_pairs({self.rows}) + APART)" if self.fragments else f"LANES * {self.rows}"
        return f"{{&net.{self.name}, {self.columns}, {words}}}"

    @property
    def seen(self) -> str:
        """How a warp reads it."""
        if self.fragments:
            return f"fragments_of(net.{self.name}, {self.matrix}, half_pairs({self.rows}), item)"
        return f"columns_of(net.{self.name}, {self.matrix}, {self.columns}, item)"


@dataclass
class Bound:
    """What the kernels know of connections: members of ``Net``, how they are filled, copies of dense weights by name."""

    fields: list[str] = field(default_factory=list)
    binding: list[str] = field(default_factory=list)
    copies: dict[str, WeightCopy] = field(default_factory=dict)
    near: list[NearWeight] = field(default_factory=list)


class Steps:
    """Writes the phases of a program.

    Parameters
    ----------
    storage
        What is kept of the program's buffers.
    precision
        ``"bfloat16"``: of the factors of dense backward products and of deltas; ``"float16"``: of forward products and of what is kept of
        the past too.
    """

    def __init__(self, storage: Storage, precision: Precision = "float32") -> None:
        self.storage = storage
        self.half = HALVES[precision]
        """C++ type of numbers of 16 bits."""
        self.rounds_forward = precision == "float16"
        """Whether forward products and the past are rounded too: with the 8 bits of a bfloat16 other neurons would fire."""
        self.program = storage.program
        self.tables = Tables()
        self.bound = Bound()
        self._wires: dict[str, Wires] = {}
        self._weights: dict[str, str] = {}

    # ---- forward -----------------------------------------------------------------------------------------------------

    def forward(self) -> list[Phase]:
        """Phases of all populations, in the order of the program."""
        found = []
        for op in self.program.forward:
            if isinstance(op, NeuronStep):
                info = self.population(op.population)
                sums = [line for port, current in enumerate(op.currents) for line in self._arriving(port, current)]
                found.append(self._phase(info, sums, forward_lines(self.program, info, op, self.past(op))))
        return found

    def _arriving(self, port: int, current: str) -> list[str]:
        lines: list[str] = []
        for op in self.program.forward:
            if isinstance(op, Fill) and op.target == current:
                start = " + ".join(f"net.{bias}[item.column]" for bias in op.biases) or "0.0f"
                lines.append(f"for (int s = 0; s < TILE; ++s) item.sum({port}, s) = {start};")
            elif isinstance(op, Arrival) and op.target == current:
                lines += self._arrival(op, port)
        return lines

    def _arrival(self, op: Arrival, port: int) -> list[str]:
        each = f"for (int s = 0; s < item.samples; ++s) item.sum({port}, s) += "
        row = f"net.{op.source.buffer}.values({_step(op.source, back=False)}, item.sample + s)"
        if isinstance(op, Dense):
            return self._dense(op, port)
        if isinstance(op, Convolve):
            bias = f" + net.{op.bias}[item.column / {_positions(op.windows)}]" if op.bias is not None else ""
            return [f"{each}window_sum({self.windows(op)}, item.column, {row}, net.{op.weight}){bias};"]
        wires = self.wires(op)
        if is_maximum(op):
            self._bind_wires(f"{op.connection}_by_target", self._of_maximum(op))
            return [
                f"for (int s = 0; s < item.samples; ++s) {{ const auto values = {row}; "
                f"item.sum({port}, s) += values[largest(net.{op.connection}_by_target, item.column, values)]; }}"
            ]
        source, target, weight = columns(wires)
        self._bind_wires(f"{op.connection}_by_target", self.tables.wires(by(target, self.storage.size(op.target), source, weight)))
        bias = ""
        if isinstance(op, Rescale) and op.bias is not None and wires.bias is not None:
            self._bind_table(f"{op.connection}_bias_of", self.tables.add(wires.bias.reshape(-1, 1)))
            bias = f" + net.{op.bias}[net.{op.connection}_bias_of[item.column]]"
        return [f"{each}wired_sum(net.{op.connection}_by_target, item.column, {row}, {self._weight(op)}){bias};"]

    def _dense(self, op: Dense, port: int) -> list[str]:
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

    def backward(self) -> list[Phase]:
        """Phases of all populations that have an adjoint, in the order of the program."""
        found = []
        for op in self.program.backward:
            if isinstance(op, NeuronAdjoint):
                info = self.population(op.population)
                sums = [line for port, buffer in enumerate(op.outputs) for line in self._returning(port, buffer)]
                short = {current for current in op.currents if self.rounds_delta(current)}
                lines = backward_lines(self.program, info, op, self.past(op), short, lambda gradient: f"{gradient}_sums")
                found.append(self._phase(info, sums, lines))
        return found

    def _returning(self, port: int, buffer: str) -> list[str]:
        lines = [f"for (int s = 0; s < TILE; ++s) item.sum({port}, s) = 0.0f;"]
        for op in self.program.backward:
            if isinstance(op, RecordAdjoint | InputGradient) and op.source.buffer == buffer:
                some = self._return(op, port)
                lines += (
                    [f"if (t + {op.source.delay} < run.steps + run.after) {{", *(f"  {line}" for line in some), "}"]
                    if op.source.delay
                    else some
                )
        return lines

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
        c = op.connection
        arrival = self.arrival(c)
        wires = self.wires(arrival)
        if is_maximum(op):
            self._bind_wires(f"{c}_by_source", self.tables.wires(choices_by_source(wires, self.storage.size(op.source.buffer))))
            values = f"net.{op.source.buffer}.values(t, item.sample + s)"
            return [f"{each}chosen_sum(net.{c}_by_target, net.{c}_by_source, item.column, {values}, {delta});"]
        source, target, weight = columns(wires)
        self._bind_wires(f"{c}_by_source", self.tables.wires(by(source, self.storage.size(op.source.buffer), target, weight)))
        return [f"{each}wired_sum(net.{c}_by_source, item.column, {delta}, {self._weight(arrival)});"]

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

    def windows(self, op: Convolve | ConvolveInputGradient) -> str:
        """C++ expression of a convolution's windows."""
        return windows_expression(op.windows, op.groups, self.program.buffers[op.weight].shape[0])

    def records(self) -> list[dict[str, object]]:
        """What copies the records of all steps."""
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

    def edges(self) -> list[Edge]:
        """Which populations read which, and how late."""
        owner = {buffer: op.population for op in self.program.forward if isinstance(op, NeuronStep) for buffer in op.outputs}
        readers = {current: op.population for op in self.program.forward if isinstance(op, NeuronStep) for current in op.currents}
        arriving = [op for op in self.program.forward if isinstance(op, Arrival) and op.source.buffer in owner]
        return [(owner[op.source.buffer], readers[op.target], op.source.delay) for op in arriving]

    def _copy(self, weight: str, kind: Kind) -> str:
        """C++ expression of a copy of a dense weight."""
        outputs, inputs = self.program.buffers[weight].shape
        copy = WeightCopy(weight, kind, inputs, outputs)
        self.bound.copies[copy.name] = copy
        return f"net.{copy.name}"

    def _near(self, op: Dense, inputs: int, outputs: int) -> str:
        """C++ expression of the columns of a weight [inputs][outputs], near or not."""
        reader = next(o.population for o in self.program.forward if isinstance(o, NeuronStep) and op.target in o.currents)
        return self._seen(NearWeight(f"{op.connection}_near", f"net.{op.weight}", reader, inputs, outputs, back=False))

    def _near_back(self, op: DenseInputGradient, outputs: int, inputs: int) -> str:
        """The same of its copy [outputs][inputs]."""
        reader = next(o.population for o in self.program.backward if isinstance(o, NeuronAdjoint) and op.source.buffer in o.outputs)
        matrix = self._copy(op.weight, "back" if self.half is None else "backward16")
        half = self.half is not None
        return self._seen(NearWeight(f"{op.connection}_near_back", matrix, reader, outputs, inputs, back=True, fragments=half))

    def _seen(self, near: NearWeight) -> str:
        if near not in self.bound.near:
            self.bound.near.append(near)
            self.bound.fields.append(f"Near {near.name};")
        return near.seen

    def _of_maximum(self, op: Arrival) -> str:
        wires = self.wires(op)
        return f"{{{self.tables.add(wires.begin.reshape(-1, 1))}, {self.tables.add(wires.entries)}}}"

    def _phase(self, info: PopulationInfo, sums: Sequence[str], lines: Sequence[str]) -> Phase:
        size = 1
        for axis in info.shape:
            size *= axis
        return Phase(info.id, f"Population {comment_text(info.label)}: {comment_text(info.model.name)}", size, tuple(sums), tuple(lines))

    def _weight(self, op: Arrival) -> str:
        weight = op.weight if isinstance(op, SparseProduct | OneToOne | Rescale) else None
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

    def _bind_wires(self, name: str, expression: str) -> None:
        self.bound.fields.append(f"Wires {name};")
        self.bound.binding.append(f"net.{name} = {expression};")

    def _bind_table(self, name: str, expression: str) -> None:
        self.bound.fields.append(f"const std::uint32_t *{name};")
        self.bound.binding.append(f"net.{name} = {expression};")


def windows_expression(windows: Windows, groups: int, outputs: int) -> str:
    """``Windows{…}`` of a convolution; a lone axis is the second."""
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


def _step(source: Value, *, back: bool) -> str:
    """The step that is read: of a source what was before, of an adjoint what comes after."""
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
