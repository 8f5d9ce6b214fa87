"""Launch plan of a program: its kernels, the buffers between them, and the order of launches.

For components, see :mod:`snnc.backends.cuda.schedule.schedule`. A *core* is the kernel of a :class:`RecurrentLoop`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from snnc.backends.cuda.kernels.connections import SharedWeight
from snnc.backends.cuda.kernels.copies import LANES
from snnc.backends.cuda.kernels.limits import limit_name
from snnc.backends.cuda.kernels.neurons import NeuronStruct
from snnc.backends.cuda.kernels.steps import OutsideSum, StepPhase, Steps
from snnc.backends.cuda.schedule.launches import Launch, Launches, Way, timed
from snnc.backends.cuda.schedule.overlap import LARGEST_CLUSTER, BackwardCore
from snnc.backends.cuda.schedule.schedule import Component, Feedback, RecurrentLoop, Walk
from snnc.backends.cuda.schedule.sequence_calls import SequenceCalls
from snnc.compiler.ir.arrays.sizes import FLOAT
from snnc.compiler.ir.step_operations import ConnectionOp, DenseInputGradient, DenseProduct, InputGradient, NeuronAdjoint, RecordAdjoint
from snnc.compiler.neurons.expression import Symbol

SharedWeights = dict[str, list[str]]


@dataclass(frozen=True)
class FeedbackKernels:
    """The kernels of a feedback loop, as template data."""

    loop: Feedback
    forward_phases: tuple[StepPhase, ...]
    backward_phases: tuple[StepPhase, ...]
    """Each population's part of a step."""
    limits: dict[str, int]
    """Number of 32-bit words with the spikes of a sample, by limited source. A separate phase, with one warp per sample, chooses the spikes
    that are sent."""
    sizes: dict[str, int]
    """Number of neurons of each forward phase; for a phase that chooses spikes: 32, because one warp processes a sample."""
    near: SharedWeights
    """Statements that load weights into shared memory (near the threads), and allocations of the weights, by pass."""
    work: dict[str, int]
    """Work of a step, with the fields of ``Work`` in ``sharing.hpp``."""
    forward_sums: int
    backward_sums: int
    """Maximum number of sums per neuron: its currents forward, its outputs backward."""


@dataclass(frozen=True)
class RecurrentCore:
    """A population whose weights stay on chip for all steps, as template data."""

    loop: RecurrentLoop
    size: int
    """Number of neurons."""
    port: int
    """Index of the current to which the recurrence adds."""
    output: int
    """Index of the output that the recurrence reads."""
    spikes: str
    """Member of ``Net``: the spikes of the output that are sent."""
    forward_parts: int
    backward_parts: int
    """Number of 16-bit values into which a weight is split."""
    goes_back: bool
    """Whether gradients flow through the recurrence."""
    limit: str
    """Name of the spike limit; empty if all spikes are sent."""
    masked: bool
    """Whether dropped spikes receive no gradient."""


class LaunchPlan:
    """The kernels of a program, in launch order."""

    def __init__(self, steps: Steps, sequence_calls: SequenceCalls, trains: bool) -> None:
        self._steps = steps
        self.sequence_calls = sequence_calls
        self.neurons: list[NeuronStruct] = []
        """Structs of populations that are not in a feedback loop."""
        self.walks: list[str] = []
        """Names of the structs that walks run."""
        self.sums: list[OutsideSum] = []
        """Kernels that sum inputs from outside a component."""
        self.feedbacks: list[FeedbackKernels] = []
        self.cores: list[RecurrentCore] = []
        self.forward: list[str] = []
        self.backward: list[str] = []
        """Host statements that launch all kernels of a pass."""
        self.fields: list[str] = []
        self.binding: list[str] = []
        """Buffers of outside sums: members of ``Net``, and statements that set their addresses."""
        self.backward_cores: list[BackwardCore] = []
        """The cores of the backward pass whose blocks form clusters, in order."""
        self._complete: set[str] = set()
        """Currents whose adjoints have been computed for all steps."""
        self.launches: list[Launch] = []
        self._launch_builder = Launches(steps)
        self.scratch: Counter[str] = Counter()
        """Number of temporary values per step and sample, in ``training`` and in ``inference``; all components share their memory."""
        for i in steps.program.inputs:
            self._choose(f"{i.id}_in", i.label)
        for component in steps.schedule.components:
            self._forward(component, trains)
        for component in reversed(steps.schedule.components if trains else ()):
            self._backward(component)
        copies_outside = bool(steps.connections.copies)  # copies that kernels outside of feedback loops read
        for component in steps.schedule.components:
            if isinstance(component, Feedback | RecurrentLoop):
                self.feedbacks.append(self._feedback(component if isinstance(component, Feedback) else component.otherwise, trains))
        spared = not copies_outside and len(self.feedbacks) == len(self.cores) and all(core.goes_back for core in self.cores)
        names = [core.loop.population for core in self.cores if spared]
        self.spare_copies = [f"{name}_{way}.is_on_chip()" for name in names for way in ("ahead", "back")]
        """C++ conditions; if all are true, no kernel reads the copies of weights. Empty: some kernel always reads them."""

    def _forward(self, component: Component, trains: bool) -> None:
        owners = {c: p for p in component.populations for c in self._steps.neuron_step(p).currents}
        currents = {c: p for c, p in owners.items() if self._steps.incoming(c, outside=True)}
        if isinstance(component, Walk) and self._passes_on(component.population):
            # The population passes its input on unchanged, so the sum is written directly to its output.
            (current,) = currents
            self._sum(self.forward, current, component.population, self._steps.neuron_step(component.population).outputs[0])
            return
        current_of = {f"c_{c}": c for p in component.populations if trains for c in self._float_deltas(p)}
        self._place([(f"c_{c}", self._steps.storage.size(c)) for c in currents], current_of, trains)
        for current, population in currents.items():
            self._sum(self.forward, current, population, f"c_{current}")
        match component:
            case Walk(population):
                self._walk(self._steps.forward_struct(population), population, "forward")
            case RecurrentLoop(population):
                self.neurons.append(self._steps.forward_struct(population))
                self.cores.append(self._core(component, trains))
                self._add(f"{population}_ahead.run(net, run_of);", self._loop(population, "forward", self.cores[-1].forward_parts))
            case Feedback(name):
                self._add(f"{name}.forward(net, run_of);", self._teams(component, "forward"))
        for population in component.populations:
            for output in self._steps.neuron_step(population).outputs:
                self._choose(output, self._steps.program.population(population).label)

    def _backward(self, component: Component) -> None:
        learning = [p for p in component.populations if p in self._steps.schedule.adjoints]
        if not learning:
            return
        outputs = {o: p for p in learning for o in self._steps.neuron_adjoint(p).outputs if self._steps.summed_adjoint(o)}
        if isinstance(component, Walk) and self._passes_back(component.population):
            (output,) = outputs
            self._sum(self.backward, output, component.population, f"d_{self._steps.neuron_step(component.population).currents[0]}")
            return
        current_of = {}
        for population in learning:
            op = self._steps.neuron_adjoint(population)
            # The adjoint of an output shares memory with the delta of a current of equal size.
            for output, current in zip(op.outputs, op.currents, strict=False):
                if not self._steps.rounds_delta(current) and self._steps.storage.size(output) == self._steps.storage.size(current):
                    current_of[f"a_{output}"] = current
        self._place([(f"a_{o}", self._steps.storage.size(o)) for o in outputs], current_of, True)
        for output, population in outputs.items():
            self._sum(self.backward, output, population, f"a_{output}")
        match component:
            case RecurrentLoop(population) if any(core.loop is component and core.goes_back for core in self.cores):
                self.neurons.append(self._steps.backward_struct(population))
                loop = self._loop(population, "backward", 1 if self._steps.half == "BFloat16" else 2)
                if loop.neurons <= LARGEST_CLUSTER:
                    self.backward_cores.append(BackwardCore(loop.of, len(self.backward), frozenset(self._complete)))
                self._add(f"{population}_back.run(net, run_of);", loop)
            case Walk(population) | RecurrentLoop(population):
                self._walk(self._steps.backward_struct(population), population, "backward")
            case Feedback(name):
                self._add(f"{name}.backward(net, run_of);", self._teams(component, "backward"))
        self._complete.update(current for p in learning for current in self._steps.neuron_step(p).currents)

    def _choose(self, buffer: str, label: str) -> None:
        """Add the launch that chooses the spikes of a limited source."""
        limits = self._steps.limits
        if buffer in limits.sources:
            self._add(limits.choose(buffer), Launch("pack", "forward", label, limits.row_bytes(buffer)))

    def _add(self, call: str, launch: Launch) -> None:
        number = sum(one.way == launch.way for one in self.launches)
        statements = self.forward if launch.way == "forward" else self.backward
        statements += [timed(launch.way, number), call]
        self.launches.append(launch)

    def _sum(self, statements: list[str], port: str, population: str, to: str) -> None:
        """Add the launches that sum the outside inputs of a current or, in the backward pass, the outside gradients of an output."""
        adding: Sequence[ConnectionOp | RecordAdjoint | InputGradient]
        adding = self._steps.incoming(port, outside=True) if statements is self.forward else self._steps.gradients(port, outside=True)
        label, last_cleared = self._steps.program.population(population).label, None
        if statements is self.backward and port in self._steps.limits.masked:
            # Gradients of dense connections come first: they alone are cleared for dropped spikes.
            adding = sorted(adding, key=lambda op: not isinstance(op, DenseInputGradient))
            last_cleared = next((op for op in reversed(adding) if isinstance(op, DenseInputGradient)), None)
        for number, op in enumerate(adding):
            first = number == 0
            if isinstance(op, ConnectionOp):
                call = self.sequence_calls.forward_call(op, to, first=first)
            else:
                call = None if isinstance(op, RecordAdjoint) else self.sequence_calls.backward_call(op, to, first=first)
            if call is None:
                outside = self._steps.outside_sum(f"{port}_sum{number}", population, to, op, first=first)
                self.sums.append(outside)
                call = f"launch({outside.name}, at_once, shared_bytes(WIDE), false, net, run_of);"
            self._add(call, self._launch_builder.contribution(op, label))
            if op is last_cleared:
                moved = self._steps.limits.row_bytes(port) + FLOAT * self._steps.storage.size(port)
                self._add(self._steps.limits.clear_dropped(port, to), Launch("pack", "backward", label, moved))

    def _walk(self, struct: NeuronStruct, population: str, way: Way) -> None:
        self.neurons.append(struct)
        self.walks.append(struct.name)
        label = self._steps.program.population(population).label
        launch = Launch("walk", way, label, self._walked_bytes(population), neurons=struct.size)
        self._add(f"launch_walk({struct.name}_walk(), {struct.size}, batch, net, run_of);", launch)

    def _loop(self, population: str, way: Way, parts: int) -> Launch:
        label, bytes_ = self._steps.program.population(population).label, self._walked_bytes(population)
        return Launch("core", way, label, bytes_, neurons=self._steps.neurons(population), parts=parts)

    def _teams(self, feedback: Feedback, way: Way) -> Launch:
        work = self._work(feedback)
        kind, listed = ("valued", work["listed"]) if way == "forward" else ("back", 0)
        return Launch(
            "feedback",
            way,
            ", ".join(self._steps.program.population(p).label for p in feedback.populations),
            sum(self._walked_bytes(p) for p in feedback.populations),
            depth=work[f"{kind}_rows"],
            neurons=sum(self._steps.neurons(p) for p in feedback.populations),
            levels=work["levels"],
            weights=work[kind],
            listed=listed,
        )

    def _walked_bytes(self, population: str) -> int:
        """Return the bytes of a row: sums that are read, and histories and deltas that are written or, in the backward pass, read."""
        kernel = self._steps.program.population(population).kernel
        return FLOAT * self._steps.neurons(population) * (len(kernel.inputs) + max(1, len(kernel.history)))

    def _core(self, loop: RecurrentLoop, trains: bool) -> RecurrentCore:
        op, recurrence = self._steps.neuron_step(loop.population), loop.recurrence
        source, limits = recurrence.source.buffer, self._steps.limits
        returning = [b for b in self._steps.program.backward if isinstance(b, DenseInputGradient) and b.connection == recurrence.connection]
        return RecurrentCore(
            loop,
            self._steps.storage.size(recurrence.target),
            op.currents.index(recurrence.target),
            op.outputs.index(source),
            limits.received(source),
            1 if self._steps.rounds_forward else 2,
            # A weight in float32 or float16 does not fit in one bfloat16 value.
            1 if self._steps.half == "BFloat16" else 2,
            trains and bool(returning),
            limit_name(source) if source in limits.sources else "",
            source in limits.masked,
        )

    def _passes_on(self, population: str) -> bool:
        """Return whether a population passes the sum of one port on unchanged, and stores nothing."""
        kernel, op = self._steps.program.population(population).kernel, self._steps.neuron_step(population)
        if kernel.states or kernel.saved or len(kernel.inputs) != 1 or len(kernel.outputs) != 1 or self._steps.spikes(op.outputs[0]):
            return False
        same = len(kernel.forward) == 1 and kernel.forward[0].value == Symbol(kernel.inputs[0])
        return same and bool(self._steps.incoming(op.currents[0], outside=True))

    def _passes_back(self, population: str) -> bool:
        """Return whether the adjoint of the population's current equals the sum of the gradients of its output."""
        op = self._steps.neuron_adjoint(population)
        return self._passes_on(population) and not self._steps.rounds_delta(op.currents[0]) and self._steps.summed_adjoint(op.outputs[0])

    def _float_deltas(self, population: str) -> list[str]:
        """Return the currents with float32 deltas; their buffers can store the sums until the deltas are written."""
        if population not in self._steps.schedule.adjoints:
            return []
        return [c for c in self._steps.neuron_adjoint(population).currents if not self._steps.rounds_delta(c)]

    def _place(self, sums: Sequence[tuple[str, int]], current_of: dict[str, str], trains: bool) -> None:
        """Add buffers of sums, given by name and size, to the temporary memory.

        In training, a buffer for which `current_of` names a current uses the memory of that current's deltas instead.
        """
        used = 0
        separate = [s for s in sums if s[0] not in current_of]
        for number, (name, size) in enumerate([*separate, *(s for s in sums if s[0] in current_of)]):
            kind = f"Rows<{size}, 0>"
            place = f"{kind}{{scratch.data() + scratch_rows() * {used}, {{kept, batch, 0}}}}"
            self.fields.append(f"{kind} {name};")
            self.binding.append(f"net.{name} = {f'training ? net.d_{current_of[name]} : {place}' if name in current_of else place};")
            used += size
            if number < len(separate) and trains:
                self.scratch["training"] = max(self.scratch["training"], used)
        self.scratch["inference"] = max(self.scratch["inference"], used)

    def _feedback(self, feedback: Feedback, trains: bool) -> FeedbackKernels:
        steps = self._steps
        forward = steps.feedback_forward(feedback)
        backward = steps.feedback_backward(feedback) if trains else []
        sizes = {phase.name: phase.size for phase in forward} | {limit_name(source): LANES for source in feedback.limits}
        ops = [steps.neuron_step(p) for p in feedback.populations]
        adjoints = [op for op in steps.program.backward if isinstance(op, NeuronAdjoint) and op.population in feedback.populations]
        shared = [one for one in steps.connections.shared_weights if one.reader in feedback.populations]
        return FeedbackKernels(
            feedback,
            tuple(forward),
            tuple(backward),
            {source: steps.limits.words(source) for source in feedback.limits},
            sizes,
            _shared_weights(shared, sizes, feedback),
            self._work(feedback),
            max((len(op.currents) for op in ops), default=1) or 1,
            max((len(op.outputs) for op in adjoints), default=1) or 1,
        )

    def _work(self, feedback: Feedback) -> dict[str, int]:
        steps, program = self._steps, self._steps.program
        ops = [steps.neuron_step(p) for p in feedback.populations]
        currents = {c for op in ops for c in op.currents}
        inside = {op.connection for c in currents for op in steps.incoming(c, outside=False)}
        products = [op for op in program.forward if isinstance(op, DenseProduct) and op.connection in inside]
        dense = [(op, program.parameters[op.weight].value.size) for op in products]
        listed = sum(size for op, size in dense if steps.spikes(op.source.buffer))
        back = [op for op in program.backward if isinstance(op, DenseInputGradient) and op.connection in inside]
        rows, rows_back = Counter[str](), Counter[str]()
        for op, _ in dense:
            rows[op.target] += 0 if steps.spikes(op.source.buffer) else program.buffers[op.weight].shape[1]
        for one in back:
            rows_back[one.source.buffer] += program.buffers[one.weight].shape[0]
        return {
            "levels": len(feedback.forward.stretches),
            "chunks": sum(-(-self._steps.storage.size((op.states or op.outputs)[0]) // LANES) for op in ops),
            "listed": listed,
            "valued": sum(size for _, size in dense) - listed,
            "back": sum(program.parameters[op.weight].value.size for op in back),
            "valued_rows": max(rows.values(), default=0),
            "back_rows": max(rows_back.values(), default=0),
        }


def _shared_weights(weights: Sequence[SharedWeight], sizes: dict[str, int], feedback: Feedback) -> SharedWeights:
    """Return statements that load a block's weights into shared memory, and the allocations of the weights, most rows first."""
    statements: SharedWeights = {"forward": [], "backward": [], "forward_places": [], "backward_places": []}
    for weight in sorted(weights, key=lambda one: -one.rows):
        way, turns = ("backward", feedback.backward) if weight.back else ("forward", feedback.forward)
        stretches = ([turn.name for turn in stretch] for stretch in turns.stretches)  # populations between two barriers
        names = next(names for names in stretches if weight.reader in names)
        before = names[: names.index(weight.reader)]
        items = " + ".join(f"Items<TILE, {sizes[name]}>::all(team)" for name in before) or "0"
        statements[way].append(f"{weight.fetch}, team, {items});")
        statements[f"{way}_places"].append(weight.place)
    return statements
