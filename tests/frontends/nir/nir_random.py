"""Random NIR files with every node type, and the comparison of a graph with the interpreter."""

from __future__ import annotations

from dataclasses import dataclass, field

import h5py
import numpy as np

import snnc
from snnc.compiler.ir.graph import Input
from snnc.frontends.nir.interpreter.interpreter import simulate

DT = 1e-3
LARGEST = 1e5
"""Magnitude beyond which float32 has too few digits to compare."""
NEURONS = ("I", "IF", "LI", "LIF", "CubaLI", "CubaLIF")
NAMES = ("fc", "a.b", "0", "12", "läg er", "x y", "node", "Ω", "1.lif", "n-1", "if", "class", "in", "Out", "a", "b.c", "λ.0", "_", "w\t")


@dataclass
class Node:
    """A node or a nested graph, to be written without the checks of the nir package."""

    type: str
    fields: dict
    nodes: dict = field(default_factory=dict)
    edges: list = field(default_factory=list)
    metadata: dict = field(default_factory=dict)

    def write(self, group):
        """Write the node into a group of HDF5, as nir.write lays it out."""
        group["type"] = self.type
        for name, value in self.fields.items():
            group[name] = value
        for name, value in self.metadata.items():
            group[f"metadata/{name}"] = value
        if self.type == "NIRGraph":
            group["edges"] = np.array(self.edges, dtype=h5py.string_dtype()).reshape(-1, 2)
            nodes = group.create_group("nodes")
            for name, node in self.nodes.items():
                node.write(nodes.create_group(name))


def graph(nodes, edges, **metadata):
    return Node("NIRGraph", {}, nodes, edges, metadata)


class Maker:
    """Draws nodes, graphs and inputs.

    Parameters
    ----------
    rng
        Where all draws come from.
    """

    def __init__(self, rng):
        self.rng = rng

    def pick(self, items):
        items = list(items)
        return items[int(self.rng.integers(len(items)))]

    def chance(self, p):
        return bool(self.rng.random() < p)

    def name(self, taken):
        """Return a name that is not taken yet."""
        name = self.pick(NAMES)
        while name in taken:
            name += self.pick("01.ab é")
        return name

    def field(self, shape, low, high):
        """Return one value for all neurons, or one each."""
        kind = self.rng.integers(4)
        shape = ((), (1,), shape, shape)[kind]
        value = self.rng.uniform(low, high, shape)
        if kind == 3:
            value = np.full(shape, value.reshape(-1)[0])
        return np.asarray(value, self.pick([np.float32, np.float64]))

    def neuron(self, kind, shape):
        """Return a neuron of any parameters."""
        whole = lambda low, high: self.rng.uniform(low, high, shape).astype(np.float32)  # noqa: E731
        some = lambda low, high: self.field(shape, low, high)  # noqa: E731
        plain = self.chance(0.3)
        tau = whole(2e-3, 2e-2)
        leak = np.zeros(shape) if plain or self.chance(0.5) else whole(-0.3, 0.3)
        fields = {"r": tau / DT if plain else some(1, 8)}
        if kind in ("I", "IF"):
            fields = {"r": np.full(shape, 1 / DT) if plain else some(50, 400)}
        elif kind in ("LI", "LIF"):
            fields |= {"tau": tau, "v_leak": leak}
        else:
            fast = whole(2e-3, 1e-2)
            fields |= {"tau_mem": tau, "v_leak": leak, "tau_syn": fast, "w_in": fast / np.float32(DT) if plain else some(0.5, 4)}
        if kind.endswith("IF"):
            fields |= {"v_threshold": some(0.2, 1.2), "v_reset": np.zeros(shape) if self.chance(0.5) else whole(-0.5, 0.1)}
        for name in ("v_reset", "w_in"):
            if self.chance(0.1):
                fields.pop(name, None)
        return Node(kind, fields)

    def linear(self, outputs, inputs, gain=1.0):
        weight = (gain * self.rng.normal(0.2, 1, (outputs, inputs)) / np.sqrt(inputs)).astype(np.float32)
        bias = self.rng.normal(0, 0.1, outputs).astype(np.float32)
        return Node("Linear", {"weight": weight}) if self.chance(0.5) else Node("Affine", {"weight": weight, "bias": bias})

    def delay(self, shape):
        steps = self.rng.integers(0, 4, shape) if self.chance(0.6) else np.full(shape, self.rng.integers(0, 4))
        return Node("Delay", {"delay": (steps * DT).astype(self.pick([np.float32, np.float64]))})

    def convolution(self, shape):
        """Return a convolution of [C, N] or [C, H, W] and the shape that leaves it."""
        axes = len(shape) - 1
        groups = self.pick([g for g in (1, 2, shape[0]) if shape[0] % g == 0])
        outputs = groups * int(self.rng.integers(1, 3))
        kernel = self.rng.integers(1, 4, axes)
        dilation = self.rng.integers(1, 3, axes)
        padding = self.pick(["same", "valid", "numbers", "number"])
        stride = np.ones(axes, int) if padding == "same" else self.rng.integers(1, 3, axes)
        pad = {"same": dilation * (kernel - 1), "valid": 0 * kernel}.get(padding)
        if pad is None:
            one = self.rng.integers(0, 2, axes if padding == "numbers" else 1)
            padding, pad = (one.tolist() if axes > 1 else int(one[0])), 2 * one * np.ones(axes, int)
        sizes = (np.array(shape[1:]) + pad - dilation * (kernel - 1) - 1) // stride + 1
        if sizes.min() < 1:
            return None
        weight = (self.rng.normal(0.2, 1, (outputs, shape[0] // groups, *kernel)) / np.sqrt(shape[0] * kernel.prod())).astype(np.float32)
        bias = self.rng.normal(0, 0.1, outputs).astype(np.float32)
        plain = (lambda a: int(a[0])) if axes == 1 else (lambda a: a)
        fields = {
            "weight": weight,
            "bias": bias,
            "stride": plain(stride),
            "padding": padding,
            "dilation": plain(dilation),
            "groups": groups,
        }
        if self.chance(0.7):
            fields["input_shape"] = plain(np.array(shape[1:]))
        return Node(f"Conv{axes}d", fields), (outputs, *sizes.tolist())

    def pooling(self, shape):
        kernel, stride, padding = self.rng.integers(1, 4, 2), self.rng.integers(1, 3, 2), self.rng.integers(0, 2, 2)
        padding = np.minimum(padding, kernel // 2)
        sizes = (np.array(shape[1:]) + 2 * padding - kernel) // stride + 1
        if sizes.min() < 1:
            return None
        fields = {"kernel_size": kernel, "stride": stride, "padding": padding}
        return Node(self.pick(["SumPool2d", "AvgPool2d"]), fields), (shape[0], *sizes.tolist())

    def step(self, shape, depth):
        """Return a node or a graph that reads `shape`, and what leaves it."""
        size = int(np.prod(shape))
        kinds = ["neuron"] * 5 + ["Scale", "Threshold", "Delay"]
        kinds += ["Linear"] * 3 if len(shape) == 1 else ["Flatten"] + ["conv"] * 3
        kinds += ["pool"] if len(shape) == 3 else []
        kinds += ["graph"] * 2 if depth < 3 else []
        kind = self.pick(kinds)
        if kind == "neuron":
            return self.neuron(self.pick(NEURONS), shape), shape
        if kind == "Scale":
            return Node("Scale", {"scale": self.field(shape, -1.5, 1.5)}), shape
        if kind == "Threshold":
            return Node("Threshold", {"threshold": self.field(shape, -0.5, 1.0)}), shape
        if kind == "Delay":
            return self.delay(shape), shape
        if kind == "Linear":
            outputs = int(self.rng.integers(1, 7))
            return self.linear(outputs, size), (outputs,)
        if kind == "Flatten":
            first = int(self.rng.integers(len(shape)))
            last = int(self.rng.integers(first, len(shape)))
            left = (*shape[:first], int(np.prod(shape[first : last + 1])), *shape[last + 1 :])
            ends = (first - len(shape), last - len(shape)) if self.chance(0.5) else (first, last)
            return Node("Flatten", {"start_dim": ends[0], "end_dim": ends[1], "input_type": np.array(shape)}), left
        if kind == "graph":
            nodes, edges, left = self.inner(shape, depth + 1)
            return graph(nodes, edges), left
        return (self.convolution(shape) if kind == "conv" else self.pooling(shape)) or self.step(shape, depth)

    def inner(self, shape, depth):
        """Return nodes and edges of a graph with one Input and one Output, and what leaves it."""
        start = self.name(())
        nodes, edges, made = {start: Node("Input", {"shape": np.array(shape)})}, [], [(start, shape)]
        self.grow(nodes, edges, made, depth)
        loose = [m for m in made[1:] if m[0] not in {s for s, _ in edges}]
        last, left = (loose or made)[-1]
        end = self.name(nodes)
        nodes[end] = Node("Output", {"shape": np.array(left)})
        edges += [(n, end) for n, s in made[1:] if s == left and (n == last or self.chance(0.2))]
        self.loop(nodes, edges, made)
        return nodes, edges, left

    def grow(self, nodes, edges, made, depth):
        for _ in range(int(self.rng.integers(1, 6))):
            source, shape = made[-1] if self.chance(0.7) else self.pick(made)
            node, left = self.step(shape, depth)
            name = self.name(nodes)
            nodes[name] = node
            edges.append((source, name))
            edges += [(n, name) for n, s in made if s == shape and n != source and self.chance(0.15)]
            made.append((name, left))

    def loop(self, nodes, edges, made):
        """Lead spikes back to neurons that come before or to themselves."""
        neurons = [(n, s) for n, s in made if nodes[n].type in NEURONS and len(s) == 1]
        for name, shape in neurons:
            if not self.chance(0.5):
                continue
            source, left = self.pick([m for m in made[1:] if len(m[1]) == 1])
            way = self.pick(["plain", "weights", "weights", "delay", "neuron"])
            if way == "plain" and left == shape and (source, name) not in edges:
                edges.append((source, name))
                continue
            if way in ("delay", "neuron"):
                extra = self.name(nodes)
                delay = (self.rng.integers(0, 3, left) * DT).astype(np.float32)
                nodes[extra] = self.neuron("LIF", left) if way == "neuron" else Node("Delay", {"delay": delay})
                edges.append((source, extra))
                source = extra
            back = self.name(nodes)
            nodes[back] = self.linear(shape[0], left[0], 0.5)
            edges += [(source, back), (back, name)]

    def network(self):
        """Return nodes and edges of a graph with one or several Inputs and Outputs."""
        shapes = [(int(self.rng.integers(1, 6)),), (2, 7), (2, 5, 6), (4, 4, 3), (1, 3, 3)]
        nodes, edges, made = {}, [], []
        for _ in range(1 + self.chance(0.25)):
            name, shape = self.name(nodes), self.pick(shapes)
            nodes[name] = Node("Input", {"shape": np.array(shape)})
            made.append((name, shape))
        inputs = [n for n, _ in made]
        while any(n not in {s for s, _ in edges} for n in inputs):
            unread = next(m for m in made if m[0] in inputs and m[0] not in {s for s, _ in edges})
            made.append(made.pop(made.index(unread)))
            self.grow(nodes, edges, made, 0)
        made.sort(key=lambda m: m[0] not in inputs)
        self.loop(nodes, edges, made[len(inputs) - 1 :])
        sources = {s for s, _ in edges}
        for name, shape in made:
            if name not in inputs and (name not in sources or self.chance(0.15)):
                end = self.name(nodes)
                nodes[end] = Node("Output", {"shape": np.array(shape)})
                edges.append((name, end))
        return nodes, [edges[k] for k in self.rng.permutation(len(edges))]


def random_file(path, seed):
    """Write a random NIR file."""
    maker = Maker(np.random.default_rng(seed))
    nodes, edges = maker.network()
    with h5py.File(path, "w") as file:
        graph(nodes, edges, **({"dt": DT} if maker.chance(0.3) else {})).write(file.create_group("node"))
    return path


def inputs_of(graph, seed, steps=8, batch=2):
    rng = np.random.default_rng(seed)
    return {n: rng.normal(0.4, 1, (steps, batch, *i.shape)).astype(np.float32) for n, i in graph.of_type(Input)}


def run(graph, arrays):
    steps, batch = next(iter(arrays.values())).shape[:2]
    with snnc.compile(graph, target="reference", steps=steps, batch=batch) as session:
        return session.run(arrays)


def undecided_step(simulation, steps):
    """Return the first step at which rounding decides, by a membrane near its threshold or by values beyond all use; else `steps`."""
    for t in range(steps):
        for name, margin in simulation.margins.items():
            values = [margin, *simulation.states.get(name, {}).values()]
            size = max([1.0, *(float(np.abs(v[: t + 1]).max(initial=0)) for v in values)])
            if not size < LARGEST or np.abs(margin[t]).min(initial=np.inf) < 3e-5 * size:
                return t
        others = [*simulation.outputs.values(), *(v for s in simulation.states.values() for v in s.values())]
        if not all(np.abs(v[t]).max(initial=0) < LARGEST for v in others):
            return t
    return steps


def compare_arrays(found, simulation, steps):
    """Raise where outputs differ from the interpreter's before rounding decides; return the steps compared."""
    certain = undecided_step(simulation, steps)
    assert set(found) == set(simulation.outputs)
    for name, value in simulation.outputs.items():
        got = np.asarray(found[name], np.float64)
        assert got.shape == value.shape, f"{name}: {got.shape} for {value.shape}"
        gap, size = np.abs(got - value)[:certain], np.abs(value[:certain]).max(initial=0)
        assert gap.max(initial=0) <= 1e-4 * max(1.0, size), f"{name}: {gap.max():.3g} of {size:.3g}"
    return certain


def compare(path, graph, seed=0, *, steps=8, batch=2, **options):
    """Run `graph` beside the interpreter on random inputs."""
    arrays = inputs_of(graph, seed, steps, batch)
    return compare_arrays(run(graph, arrays), simulate(path, arrays, **options), steps)
