"""Random graphs with everything that a graph can contain, from hypothesis; values are eighths, so sums are exact in any order."""

import numpy as np
from hypothesis import strategies as st

from snnc.compiler.ir.graph import (
    Add,
    Concat,
    Conv,
    FileLayout,
    Flatten,
    Graph,
    Input,
    Linear,
    OneToOne,
    Output,
    Pad,
    Pool,
    Population,
    Reduce,
    Reshape,
    Scale,
    Slice,
    Sparse,
    StateRef,
)
from snnc.compiler.ir.shapes import port_map
from snnc.compiler.neurons.library import ALIF, LI, LIF, CubaLIF, Identity, Relay
from snnc.compiler.neurons.neuron import neuron
from snnc.compiler.neurons.surrogates.library import atan, fast_sigmoid

F = np.float32
MODELS = (
    LIF(0.5),
    LIF(0.75, reset="zero"),
    LIF(0.5, strict=False, reset_delay=False),
    CubaLIF(0.5, 0.75),
    LI(0.5),
    ALIF(),
    Identity(),
    Relay(),
    neuron("two", states={"v": 0.25, "w": -0.5}, params={"a": 0.75}, equations="w = a*w + i\nv = v/2 + w\ns = spike_ge(v - 1)\nv = v - s"),
    neuron(
        "gated",
        inputs=("i", "gate"),
        states={"v": 0},
        params={"k": 0.5, "c": 2},
        equations="top = k*c\nv = where(gate, 0, min(v/2 + i, top))\ns = spike(v - k)\nm = max(v, -1)*detach(s)",
        output=("s", "m", "top"),
    ),
    neuron("LIF", states={"v": 0, "kept": 0.5}, equations="v = abs(v)/2 + sign(i)*kept\ns = ge(v, 1)*neg(-1)"),
    neuron("1/f, é", states={"v": 0}, params={"w": 0.5}, equations="v = v/2 + i + sin(w)*cos(0)\ns = gt(v, 1)"),
)
NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=6)


class _Draft:
    """A graph under construction, with the sources that may be read as (node, port, shape)."""

    def __init__(self, draw):
        self.draw = draw
        self.random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
        self.graph = Graph(draw(NAMES))
        self.open = []

    def name(self, prefix):
        name = f"{prefix}{len(self.graph.names)}"
        return f"{self.draw(NAMES)}.{name}" if self.draw(st.integers(0, 3)) == 0 else name

    def eighths(self, *shape):
        return self.random.integers(-8, 9, shape).astype(F) / 8

    def maybe(self, value):
        return value if self.draw(st.booleans()) else None

    def add(self, name, operation, shape, *edges):
        self.graph.add(name, operation)
        for (source, port, _), delay in edges:
            self.graph.connect(source, name, source_port=port, delay=delay)
        self.open.append((name, "out", shape))

    def inputs(self):
        batched, timed = self.draw(st.booleans()), self.draw(st.booleans())
        for k in range(self.draw(st.integers(1, 2))):
            shape = self.draw(st.sampled_from([(3,), (6,), (2, 5), (2, 4, 4)]))
            axes = self.draw(st.permutations(range(len(shape) + 1 + batched)))
            layout = FileLayout(axes[0] if timed or k == 0 else None, axes[1] if batched else None)
            if layout.time_axis is None and batched:
                layout = FileLayout(None, 0)
            self.add(self.name("x"), Input(shape, self.draw(st.sampled_from(["spikes", "values"])), layout), shape)
        self.batched = batched

    def layer(self):
        source = self.draw(st.sampled_from(self.open))
        shape, size = source[2], int(np.prod(source[2]))
        choices = [self.linear, self.sparse, self.scale, self.one, self.add_up, self.flat, self.cut, self.pad, self.population]
        choices += [self.reduce, self.concat] if len(shape) > 1 else [self.concat, self.turn]
        choices += [self.convolve, self.pool] if len(shape) in (2, 3) else []
        self.draw(st.sampled_from(choices))(source, shape, size, self.draw(st.sampled_from([0, 0, 0, 1, 3])))

    def linear(self, source, shape, size, delay):
        rows = self.draw(st.integers(1, 5))
        operation = Linear(self.eighths(rows, size), self.maybe(self.eighths(rows)), self.draw(st.booleans()))
        self.add(self.name("fc"), operation, (rows,), (source, delay))

    def sparse(self, source, shape, size, delay):
        rows = self.draw(st.integers(1, 4))
        dense = self.random.random((rows, size)) < 0.5
        dense[0, 0] = True
        places = [np.flatnonzero(row).astype(np.int32) for row in dense]
        indptr = np.cumsum([0, *map(len, places)]).astype(np.int32)
        operation = Sparse(
            self.eighths(int(indptr[-1])),
            np.concatenate(places),
            indptr,
            (rows, size),
            self.maybe(self.eighths(rows)),
            self.draw(st.booleans()),
        )
        self.add(self.name("sp"), operation, (rows,), (source, delay))

    def scale(self, source, shape, size, delay):
        wide = self.draw(st.sampled_from([shape, (), (shape[0], *[1] * (len(shape) - 1))]))
        operation = Scale(self.eighths(*wide), self.maybe(self.eighths(*wide)), self.draw(st.booleans()))
        self.add(self.name("sc"), operation, shape, (source, delay))

    def one(self, source, shape, size, delay):
        weight = self.draw(st.sampled_from([None, self.eighths(), self.eighths(*shape)]))
        self.add(self.name("one"), OneToOne(weight, self.draw(st.booleans())), shape, (source, delay))

    def add_up(self, source, shape, size, delay):
        others = [o for o in self.open if o[2] == shape]
        more = self.draw(st.lists(st.sampled_from(others), min_size=1, max_size=2))
        self.add(self.name("add"), Add(), shape, (source, delay), *((o, self.draw(st.integers(0, 2))) for o in more))

    def concat(self, source, shape, size, delay):
        others = [o for o in self.open if o[2] == shape]
        more = self.draw(st.lists(st.sampled_from(others), min_size=1, max_size=2))
        axis = self.draw(st.sampled_from([0, -len(shape)]))
        wide = (shape[0] * (1 + len(more)), *shape[1:])
        self.add(self.name("cat"), Concat(axis), wide, (source, delay), *((o, self.draw(st.integers(0, 1))) for o in more))

    def flat(self, source, shape, size, delay):
        self.add(self.name("flat"), Flatten(), (size,), (source, delay))

    def turn(self, source, shape, size, delay):
        made = self.draw(st.sampled_from([(1, size), (size, 1), (1, size, 1)]))
        self.add(self.name("turn"), Reshape(made), made, (source, delay))

    def reduce(self, source, shape, size, delay):
        axis, keep = self.draw(st.integers(0, len(shape) - 1)), self.draw(st.booleans())
        made = tuple(1 if k == axis else n for k, n in enumerate(shape) if keep or k != axis)
        operation = Reduce(self.draw(st.sampled_from(["sum", "mean", "max"])), (axis,), keep)
        self.add(self.name("red"), operation, made, (source, delay))

    def cut(self, source, shape, size, delay):
        stop = self.draw(st.integers(1, shape[0]))
        start = self.draw(st.integers(0, stop - 1))
        self.add(self.name("cut"), Slice(0, start, stop), (stop - start, *shape[1:]), (source, delay))

    def pad(self, source, shape, size, delay):
        padding = tuple((self.draw(st.integers(0, 1)), self.draw(st.integers(0, 1))) for _ in shape)
        made = tuple(n + sum(pair) for n, pair in zip(shape, padding, strict=True))
        self.add(self.name("pad"), Pad(padding), made, (source, delay))

    def windows(self, shape, padded):
        rank = len(shape) - 1
        kernel = tuple(self.draw(st.integers(1, min(2, n))) for n in shape[1:])
        stride = tuple(self.draw(st.integers(1, 2)) for _ in kernel)
        padding = tuple((self.draw(st.integers(0, 1)), self.draw(st.integers(0, 1))) if padded else (0, 0) for _ in kernel)
        made = tuple((n + sum(p) - k) // s + 1 for n, k, s, p in zip(shape[1:], kernel, stride, padding, strict=True))
        return rank, kernel, stride, padding, made

    def convolve(self, source, shape, size, delay):
        _, kernel, stride, padding, made = self.windows(shape, True)
        groups = self.draw(st.sampled_from([1, shape[0]]))
        weight = self.eighths(2 * shape[0], shape[0] // groups, *kernel)
        operation = Conv(weight, self.maybe(self.eighths(len(weight))), stride, padding, (), groups, self.draw(st.booleans()))
        self.add(self.name("conv"), operation, (len(weight), *made), (source, delay))

    def pool(self, source, shape, size, delay):
        _, kernel, stride, _, made = self.windows(shape, False)
        operation = Pool(self.draw(st.sampled_from(["average", "sum", "max"])), kernel, stride)
        self.add(self.name("pool"), operation, (shape[0], *made), (source, delay))

    def population(self, source, shape, size, delay):
        draw, model, name = self.draw, self.draw(st.sampled_from(MODELS)), self.name("h")

        def values(names):
            return {n: self.eighths(*draw(st.sampled_from([(), shape]))) / 2 + F(0.5) for n in names if draw(st.booleans())}

        learnable = frozenset(p for p in model.parameters if draw(st.booleans()))
        surrogate = draw(st.sampled_from([None, atan(2.0), fast_sigmoid(10.0)]))
        self.graph.add(name, Population(model, shape, values(model.parameters), learnable, values(model.states), surrogate))
        alike = [o for o in self.open if o[2] == shape]
        for port in model.inputs:
            for other in [source, *draw(st.lists(st.sampled_from(alike), max_size=1))]:
                self.graph.connect(other[0], name, source_port=other[1], target_port=port, delay=delay)
        self.open += [(name, port, shape) for port in dict.fromkeys([*model.outputs, *model.states])]
        if draw(st.booleans()):
            back = self.name("back")
            self.graph.add(back, Linear(self.eighths(size, size)))
            self.graph.connect(name, back, source_port=draw(st.sampled_from(model.outputs)), delay=draw(st.integers(0, 2)))
            self.graph.connect(back, name, delay=draw(st.integers(1, 2)))
        for state in (*model.states, *model.outputs):
            if draw(st.integers(0, 5)) == 0 and StateRef(name, state) not in self.graph.state_inputs.values():
                self.graph.state_inputs[f"{name} {state}"] = StateRef(name, state)

    def outputs(self):
        leaves = [o for o in self.open if not self.graph.outgoing(o[0]) and not isinstance(self.graph.operation(o[0]), Population)]
        leaves += [o for o in self.open if isinstance(self.graph.operation(o[0]), Population) and self.draw(st.booleans())]
        for node, port, shape in leaves or self.open[-1:]:
            readout = self.draw(st.sampled_from(["all", "all", "last", "sum", "mean", "max"]))
            timed = readout == "all"
            axes = self.draw(st.permutations(range(len(shape) + timed + self.batched)))
            layout = FileLayout(axes[0] if timed else None, axes[-1] if self.batched else None)
            name = self.name("y")
            window = self.draw(st.sampled_from([(0, None), (0, None), (1, None), (1, 4)]))
            self.graph.add(name, Output(readout, layout, *window))
            self.graph.connect(node, name, source_port=port, delay=self.draw(st.integers(0, 1)))


@st.composite
def any_graphs(draw):
    """Return a network of one to eight layers, with one or two inputs."""
    draft = _Draft(draw)
    draft.inputs()
    for _ in range(draw(st.integers(1, 7))):
        draft.layer()
    draft.outputs()
    graph = draft.graph
    graph.steps = draw(st.sampled_from([None, 1, 5]))
    if all(i.layout.time_axis is None for _, i in graph.of_type(Input)):
        graph.steps = 5
    graph.assumptions = draw(st.lists(st.text(st.characters(codec="utf-8", exclude_categories=["Cs"])), max_size=2))
    return graph


def feeds(graph, seed=0, steps=5, batch=2):
    """Return inputs and initial states for a graph of :func:`any_graphs`, in its layouts."""
    random = np.random.default_rng(seed)
    found = {}
    batched = False
    for name, operation in graph.of_type(Input):
        layout, dims = operation.layout, list(operation.shape)
        batched = layout.batch_axis is not None
        for axis, size in sorted(
            (a, n) for a, n in ((layout.time_axis, graph.steps or steps), (layout.batch_axis, batch)) if a is not None
        ):
            dims.insert(axis, size)
        values = random.integers(0, 2, dims) if operation.kind == "spikes" else random.integers(-8, 9, dims) / 4
        found[name] = values.astype(F)
    states = {}
    ports = port_map(graph)
    for name, ref in graph.state_inputs.items():
        port = ports[ref.node, ref.name]
        values = random.integers(-8, 9, [*([batch] if batched else []), *port.shape]) / 8
        states[name] = (values > 0 if port.kind == "spikes" else values).astype(F)
    return found, states


def with_readout(graph):
    """Connect all populations to a readout, which the loss reads."""
    ports = port_map(graph)
    graph.add("the readout", Population(LI(0.75), (3,)))
    random = np.random.default_rng(0)
    for name, population in list(graph.of_type(Population))[:-1]:
        port = population.model.outputs[0]
        size = int(np.prod(ports[name, port].shape))
        graph.connect(name, graph.add(f"{name} in a row", Flatten()), source_port=port)
        graph.add(f"{name} read", Linear(random.integers(-8, 9, (3, size)).astype(np.float32) / 8))
        graph.connect(f"{name} in a row", f"{name} read")
        graph.connect(f"{name} read", "the readout")
    return graph
