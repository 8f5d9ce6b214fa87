"""A NumPy simulator of Graph, independent of the backends: the oracle of the frontend tests."""

from __future__ import annotations

import networkx as nx
import numpy as np

from snnc.compiler.ir.graph import (
    Add,
    Concat,
    Conv,
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
    source_ports,
)
from snnc.compiler.ir.shapes import port_map
from snnc.compiler.neurons.expression import Call, Number, Symbol

F = np.float32
FUNCTIONS = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "neg": np.negative,
    "pow": np.power,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "abs": np.abs,
    "sign": np.sign,
    "tanh": np.tanh,
    "sigmoid": lambda x: F(1) / (F(1) + np.exp(-x)),
    "min": np.minimum,
    "max": np.maximum,
    "spike": lambda x: (x > 0).astype(F),
    "spike_ge": lambda x: (x >= 0).astype(F),
    "detach": lambda x: x,
    "gt": lambda a, b: (a > b).astype(F),
    "ge": lambda a, b: (a >= b).astype(F),
    "where": lambda c, a, b: np.where(c != 0, a, b),
}


def evaluate(e, scope):
    match e:
        case Number(value):
            return F(value)
        case Symbol(name):
            return scope[name]
        case Call(function, args):
            return FUNCTIONS[function](*(evaluate(a, scope) for a in args))


def simulate(graph: Graph, feeds: dict, states: dict | None = None, steps: int | None = None) -> dict:
    """Run `graph` on arrays in the file's layout; return its outputs in the file's layout."""
    order = _order(graph)
    shapes = {key: port.shape for key, port in port_map(graph).items()}
    inputs, batch, steps = _inputs(graph, feeds, states or {}, steps)
    given = {(r.node, r.name): np.asarray(states[n], F) for n, r in graph.state_inputs.items() if n in (states or {})}
    memory, history, results = {}, {}, {n: [] for n, _ in graph.of_type(Output)}
    for name, p in graph.of_type(Population):
        memory[name] = {
            s: np.broadcast_to(
                given[name, s].reshape(batch, *p.shape) if (name, s) in given else np.asarray(p.initial.get(s, v), F), (batch, *p.shape)
            )
            for s, v in p.model.states.items()
        }
    for t in range(steps):
        now = {}
        for name in order:
            op = graph.operation(name)
            sums = {}
            for e in graph.incoming(name):
                value = _read(e, t, now, history, given, shapes, batch)
                if isinstance(op, Population | Add):  # a vector is added to an array with as many values
                    value = value.reshape(batch, *shapes[name, source_ports(op)[0]])
                sums[e.target_port] = value if e.target_port not in sums else sums[e.target_port] + value
            _step(name, op, sums, now, memory, inputs, t, results)
        for key, value in now.items():
            history[key, t] = value
    return {n: _read_out(graph.operation(n), values) for n, values in results.items()}


def _order(graph):
    same = nx.DiGraph()
    same.add_nodes_from(graph.names)
    same.add_edges_from((e.source, e.target) for e in graph.edges if e.delay == 0)
    return list(nx.topological_sort(same))


def _inputs(graph, feeds, states, steps):
    arrays, batch = {}, 1
    for name, op in graph.of_type(Input):
        x = np.asarray(feeds[name], F)
        if op.layout.batch_axis is not None:
            batch = x.shape[op.layout.batch_axis]
        if op.layout.time_axis is not None:
            steps = x.shape[op.layout.time_axis]
    steps = steps or graph.steps
    for name, op in graph.of_type(Input):
        x = np.asarray(feeds[name], F)
        axes = [a for a in (op.layout.time_axis, op.layout.batch_axis) if a is not None]
        x = np.moveaxis(x, axes, range(len(axes)))
        if op.layout.time_axis is None:
            x = np.broadcast_to(x, (steps, *x.shape))
        arrays[name] = x.reshape(steps, batch, *op.shape)
    return arrays, batch, steps


def _read(e, t, now, history, given, shapes, batch):
    if e.delay == 0:
        return now[e.source, e.source_port]
    if t - e.delay >= 0:
        return history[(e.source, e.source_port), t - e.delay]
    shape = shapes[e.source, e.source_port]
    if (e.source, e.source_port) in given:
        return given[e.source, e.source_port].reshape(batch, *shape)
    return np.zeros((batch, *shape), F)


def windows(op, kernel, default_stride, x, fill):
    """Yield (position of a window, its values) of x [batch, channels, *size]."""
    ones = (1,) * len(kernel)
    stride, dilation = op.stride or default_stride or ones, op.dilation or ones
    padding = op.padding or ((0, 0),) * len(kernel)
    ceil = getattr(op, "ceil", False)
    counts = []
    for n, k, s, d, (before, after) in zip(x.shape[2:], kernel, stride, dilation, padding, strict=True):
        count, extent = 0, (k - 1) * d + 1
        while count * s + extent <= n + before + after or (
            ceil and count * s < n + before and (count - 1) * s + extent < n + before + after
        ):
            count += 1
        counts.append(count)
    grown = np.pad(
        x, [(0, 0), (0, 0), *((a, b + s * k) for (a, b), s, k in zip(padding, stride, kernel, strict=True))], constant_values=fill
    )
    for position in np.ndindex(*counts):
        taps = tuple(slice(p * s, p * s + (k - 1) * d + 1, d) for p, s, k, d in zip(position, stride, kernel, dilation, strict=True))
        yield counts, position, grown[(slice(None), slice(None), *taps)]


def convolve(op, x):
    """Convolution, one window after the other."""
    out = None
    groups, per = op.groups, op.weight.shape[0] // op.groups
    axes = tuple(range(1, op.weight.ndim))
    for counts, position, seen in windows(op, op.weight.shape[2:], (), x, 0):
        if out is None:
            out = np.zeros((len(x), op.weight.shape[0], *counts), F)
        for g, part in enumerate(np.split(seen, groups, 1)):
            w = op.weight[g * per : (g + 1) * per]
            out[(slice(None), slice(g * per, (g + 1) * per), *position)] = np.tensordot(part, w, (axes, axes))
    return out if op.bias is None else out + op.bias.reshape(-1, *(1,) * len(counts))


def pool(op, x):
    """Pooling, one window after the other."""
    out, inside = None, None
    if op.kind == "average":
        padding = op.padding or ((0, 0),) * len(op.kernel)
        size = [n + (sum(p) if op.count_padding else 0) for n, p in zip(x.shape[2:], padding, strict=True)]
        ones = np.ones((1, 1, *size), F)
        pads = ((0, 0),) * len(op.kernel) if op.count_padding else padding
        after = [(0, 0)] * 2 + [(0, 99)] * len(op.kernel)
        inside = np.pad(np.pad(ones, [(0, 0), (0, 0), *pads]), after)
    fill = -np.inf if op.kind == "max" else 0
    stride, dilation = op.stride or op.kernel, op.dilation or (1,) * len(op.kernel)
    for counts, position, seen in windows(op, op.kernel, op.kernel, x, fill):
        if out is None:
            out = np.zeros((*x.shape[:2], *counts), F)
        axes = tuple(range(2, seen.ndim))
        value = seen.max(axes) if op.kind == "max" else seen.sum(axes)
        if inside is not None:
            taps = tuple(slice(p * s, p * s + (k - 1) * d + 1, d) for p, s, k, d in zip(position, stride, op.kernel, dilation, strict=True))
            value = value / inside[(0, 0, *taps)].sum()
        out[(slice(None), slice(None), *position)] = value
    return out


def _step(name, op, sums, now, memory, inputs, t, results):
    match op:
        case Input():
            now[name, "out"] = inputs[name][t]
        case Linear():
            y = sums["in"].reshape(len(sums["in"]), -1) @ op.weight.T
            now[name, "out"] = y if op.bias is None else y + op.bias
        case Sparse():
            y = np.zeros((len(sums["in"]), op.shape[0]), F)
            x = sums["in"].reshape(len(y), -1)
            for row in range(op.shape[0]):
                for k in range(op.indptr[row], op.indptr[row + 1]):
                    y[:, row] += op.weight[k] * x[:, op.indices[k]]
            now[name, "out"] = y if op.bias is None else y + op.bias
        case Pad():
            now[name, "out"] = np.pad(sums["in"], [(0, 0), *op.padding])
        case OneToOne():
            now[name, "out"] = sums["in"] * (1 if op.weight is None else op.weight)
        case Add():
            now[name, "out"] = sums["in"]
        case Concat():
            now[name, "out"] = np.concatenate([sums[str(k)] for k in range(len(sums))], op.axis + 1)
        case Conv():
            now[name, "out"] = convolve(op, sums["in"])
        case Pool():
            now[name, "out"] = pool(op, sums["in"])
        case Scale():
            now[name, "out"] = sums["in"] * op.weight + (0 if op.bias is None else op.bias)
        case Reshape():
            now[name, "out"] = sums["in"].reshape(len(sums["in"]), *op.shape)
        case Reduce():
            kind = {"sum": np.sum, "mean": np.mean, "max": np.max}[op.kind]
            now[name, "out"] = kind(sums["in"], axis=tuple(a + 1 for a in op.axes), keepdims=op.keepdims)
        case Slice():
            now[name, "out"] = np.take(sums["in"], range(op.start, op.stop), op.axis + 1)
        case Flatten():
            now[name, "out"] = sums["in"].reshape(len(sums["in"]), -1)
        case Output():
            results[name].append(sums["in"])
        case Population():
            scope = {**{k: F(v) for k, v in op.model.parameters.items()}, **{k: np.asarray(v, F) for k, v in op.parameters.items()}}
            scope.update(memory[name])
            scope.update({k: v.reshape(len(v), *op.shape) for k, v in sums.items()})
            for line in op.model.equations:
                scope[line.target] = evaluate(line.value, scope)
            memory[name] = {s: scope[s] for s in op.model.states}
            size = (len(next(iter(sums.values()))), *op.shape)
            for key in {a.target for a in op.model.equations} | set(op.model.states):
                now[name, key] = np.broadcast_to(scope[key], size)


def _read_out(op, values):
    stack = np.stack(values)[op.start : op.stop]
    match op.readout:
        case "all":
            if op.layout.time_axis is None and len(stack) == 1:
                stack = stack[0]
        case "last":
            stack = stack[-1]
        case kind:
            stack = {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min}[kind](stack, axis=0)
    first = [] if op.layout.time_axis is None else [op.layout.time_axis]
    if op.layout.batch_axis is None:
        stack = stack[:, 0] if first else stack[0]
    else:
        first.append(op.layout.batch_axis)
    return np.moveaxis(stack, range(len(first)), first)
