"""Populations as C++ structs: the state that a thread keeps for one neuron of one sample, in the forward or backward time loop."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from snnc.backends.codegen.names import comment_text
from snnc.backends.codegen.printing import Guarded, Statement, c_assignments
from snnc.compiler.ir.step_operations import NeuronAdjoint, NeuronStep
from snnc.compiler.ir.step_program import PopulationInfo, StepProgram
from snnc.compiler.neurons.single_assignment import reads


@dataclass(frozen=True)
class Sum:
    """The input of a port (an input of a neuron; in the backward pass, an output) from outside the recurrence of its population."""

    buffer: str | None = None
    """Buffer with one row of values per step; None if the port has no such input."""
    delay: int = 0
    """Number of steps from the current step to the one that is read; after the end of the sequence, 0.0 is read."""
    constant: str | None = None
    """C++ expression of an input that is the same at all steps; None if the port has none."""


@dataclass
class NeuronStruct:
    """The parts of a struct, as data of ``neuron.cu.jinja``; :func:`forward_struct` and :func:`backward_struct` fill its lists."""

    name: str
    comment: str
    size: int
    """Number of neurons."""
    ports: int
    """Number of summed inputs per neuron."""
    outputs: int
    given: list[str] = field(default_factory=list)
    """Names of the values that a step reads from memory."""
    members: list[str] = field(default_factory=list)
    """Declarations of the values that a thread keeps between steps."""
    begin: list[str] = field(default_factory=list)
    """Statements before the first step."""
    read: list[str] = field(default_factory=list)
    """Statements that read the values `given` before a step."""
    step: list[Statement] = field(default_factory=list)
    end: list[Statement] = field(default_factory=list)
    """Statements after the last step."""
    spike_outputs: list[tuple[int, str]] = field(default_factory=list)
    """Index and buffer of each spike output."""

    @classmethod
    def of(cls, info: PopulationInfo, pass_: str, size: int, ports: int, outputs: int) -> NeuronStruct:
        """Return the struct ``<id>_<pass_>`` of a population, without statements; `pass_` is ``forward`` or ``back``."""
        comment = f"Population {comment_text(info.label)}: {comment_text(info.model.name)}"
        return cls(f"{info.id}_{pass_}", comment, size, max(1, ports), max(1, outputs))

    @property
    def spikes(self) -> str:
        """C++ expression that is true if ``output`` is a spike output."""
        return " || ".join(f"output == {place}" for place, _ in self.spike_outputs) or "output < 0"

    def declare(self, name: str, first: str) -> None:
        """Declare a value that is kept between steps, initialised with the expression `first`."""
        self.members.append(f"float {name};")
        self.begin.append(f"{name} = {first};")

    def at(self, buffer: str, step: str = "t", *, short: bool = False) -> str:
        """Return the C++ expression of the neuron's value in a buffer at a step; with `short`, values have 16 bits."""
        offset = "own_short" if short else "own"
        if f"int {offset};" not in self.members:
            self.members.append(f"int {offset};")
            self.begin.append(f"{offset} = b * {'((SIZE + 1) / 2 * 2)' if short else 'SIZE'} + n;")
        return f"net.{buffer}.at({step}, {offset})"

    def read_each_step(self, name: str, expression: str) -> None:
        """Add a read of a value at every step."""
        self.given.append(name)
        self.read.append(f"found.{name} = {expression};")

    def define_sums(self, names: Sequence[str], sums: Sequence[Sum], used: Collection[str]) -> None:
        """Define the sum of each port: its input from outside plus its recurrent input."""
        for port, (name, outside) in enumerate(zip(names, sums, strict=True)):
            if name not in used:
                continue
            terms = [f"more[{port}]"]
            if outside.constant is not None:
                self.declare(f"start{port}", outside.constant)
                terms.insert(0, f"start{port}")
            if outside.buffer is not None:
                value = self.at(outside.buffer, f"t + {outside.delay}" if outside.delay else "t")
                self.read_each_step(f"sum{port}", f"t + {outside.delay} < net.left ? {value} : 0.0f" if outside.delay else value)
                terms.insert(0, f"given.sum{port}")
            self.step.append(f"const float {name} = {' + '.join(terms)};")

    def declare_parameters(self, program: StepProgram, names: Sequence[str], buffers: Sequence[str], used: Collection[str]) -> None:
        """Declare the parameters that are in `used`."""
        for name, buffer in zip(names, buffers, strict=True):
            if name in used:
                self.declare(name, f"net.{buffer}[{'0' if program.buffers[buffer].shape == () else 'n'}]")


def forward_struct(
    program: StepProgram, info: PopulationInfo, op: NeuronStep, half_histories: Mapping[str, str], sums: Sequence[Sum], size: int
) -> NeuronStruct:
    """Return the struct of one forward step of the population `info`.

    `half_histories` maps each state buffer that the backward pass reads to its 16-bit history, and each saved buffer to itself; it is
    empty if histories are float32. `sums` is the input of each port from outside the recurrence, and `size` the number of neurons.
    """
    kernel, parts = info.kernel, NeuronStruct.of(info, "forward", size, len(op.currents), len(op.outputs))
    used = reads(kernel.forward, kernel.saved)
    parts.define_sums(kernel.inputs, sums, used)
    parts.declare_parameters(program, kernel.parameters, op.parameters, used)
    for state, buffer in zip(kernel.states, op.states, strict=True):
        parts.declare(f"held_{state}", f"net.{buffer}.row(-1, b)[n]")
        if buffer in half_histories:
            parts.begin.append(f"net.{half_histories[buffer]}.put(-1, b, n, held_{state});")
        if f"{state}_prev" in used:
            parts.step.append(f"const float {state}_prev = held_{state};")
    parts.step += c_assignments(kernel.forward)
    # A buffer with one slot has no history: a state is stored after the last step, and a saved value only if there is a single step.
    for state, buffer in zip(kernel.states, op.states, strict=True):
        parts.step.append(f"held_{state} = {state};")
        if buffer in half_histories:
            parts.step.append(f"{parts.at(half_histories[buffer], short=True)}.put({state});")
            parts.end.append(f"net.{buffer}.row(-1, b)[n] = held_{state};")
        else:
            parts.step.append(Guarded(f"net.{buffer}.slots.slots > 1", f"{parts.at(buffer)} = {state};"))
            parts.end.append(Guarded(f"net.{buffer}.slots.slots == 1", f"net.{buffer}.row(-1, b)[n] = held_{state};"))
    for name, buffer in zip(kernel.saved, op.saved, strict=True):
        put = f"{parts.at(buffer, short=True)}.put({name});" if buffer in half_histories else f"{parts.at(buffer)} = {name};"
        parts.step.append(Guarded(f"net.{buffer}.slots.slots > 1 || net.length == 1", put))
    for place, (name, buffer) in enumerate(zip(kernel.outputs, op.outputs, strict=True)):
        parts.step.append(f"outputs[{place}] = {name};")
        if program.buffers[buffer].kind == "spikes":
            parts.spike_outputs.append((place, buffer))
        else:
            parts.step.append(f"{parts.at(buffer)} = {name};")
    return parts


def backward_struct(
    program: StepProgram,
    info: PopulationInfo,
    op: NeuronAdjoint,
    half_histories: Mapping[str, str],
    short: Collection[str],
    sums: Sequence[Sum],
    size: int,
) -> NeuronStruct:
    """Return the struct of one backward step: its ports are the adjoints of outputs, its outputs are the adjoints of currents.

    `short` are the currents whose deltas are stored in 16 bits; the other arguments are those of :func:`forward_struct`.
    """
    kernel, parts = info.kernel, NeuronStruct.of(info, "back", size, len(op.outputs), len(op.currents))
    used = reads(kernel.backward, ())
    states = dict(zip(kernel.states, op.states, strict=True))
    parts.define_sums([f"d_{o}" for o in kernel.outputs], sums, used)
    parts.declare_parameters(program, kernel.parameters, op.parameters, used)
    for state in kernel.history:
        stored = half_histories.get(states[state], states[state])
        short_state = states[state] in half_histories
        now, before = state in used, f"{state}_prev" in used
        if before:
            parts.read_each_step(f"{state}_prev", parts.at(stored, "t - 1", short=short_state))
            parts.step.append(f"const float {state}_prev = given.{state}_prev;")
        if now and before:
            # The state before this step is the state after the next step of the backward pass.
            parts.declare(f"last_{state}", f"net.{stored}.values(net.length - 1, b)[n]")
            parts.step += [f"const float {state} = last_{state};", f"last_{state} = {state}_prev;"]
        elif now:
            parts.read_each_step(state, parts.at(stored, short=short_state))
            parts.step.append(f"const float {state} = given.{state};")
    for name, buffer in zip(kernel.saved, op.saved, strict=True):
        if name in used:
            parts.read_each_step(name, parts.at(buffer, short=buffer in half_histories))
            parts.step.append(f"const float {name} = given.{name};")
    for state, buffer in states.items():
        parts.declare(f"held_d_{state}", f"net.d_{buffer}.row(0, b)[n]")
        parts.end.append(f"net.d_{buffer}.row(0, b)[n] = held_d_{state};")
        if f"d_{state}" in used:
            parts.step.append(f"const float d_{state} = held_d_{state};")
    parts.step += c_assignments(kernel.backward)
    parts.step += [f"held_d_{state} = d_{state}_prev;" for state in states]
    for place, (name, buffer) in enumerate(zip(kernel.inputs, op.currents, strict=True)):
        parts.step.append(f"outputs[{place}] = {f'BFloat16::number(BFloat16::of(d_{name}))' if buffer in short else f'd_{name}'};")
        delta = f"d_{buffer}"
        parts.step.append(f"{parts.at(delta, short=True)}.put(d_{name});" if buffer in short else f"{parts.at(delta)} = d_{name};")
    for name, gradient in zip(kernel.learnable, op.gradients, strict=True):
        parts.declare(f"sum_{name}", f"net.{gradient}_sums.row(0, b)[n]")
        parts.step.append(f"sum_{name} += d_{name};")
        parts.end.append(f"net.{gradient}_sums.row(0, b)[n] = sum_{name};")
    return parts
