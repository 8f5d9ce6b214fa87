"""A NumPy simulator of Graph, independent of the back ends: the oracle of the front-end tests."""

from __future__ import annotations

import networkx as nx
import numpy as np

from snnc.compiler.expression import Call, Number, Symbol
from snnc.compiler.graph import Add, Concat, Flatten, Graph, Input, Linear, OneToOne, Output, Population

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
    inputs, batch, steps = _inputs(graph, feeds, states or {}, steps)
    given = {(r.node, r.name): np.asarray(states[n], F) for n, r in graph.state_inputs.items() if n in (states or {})}
    shape = {}
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
                value = _read(e, t, now, history, given, shape, batch, graph)
                sums[e.target_port] = value if e.target_port not in sums else sums[e.target_port] + value
            _step(name, op, sums, now, memory, inputs, t, results)
        for key, value in now.items():
            history[key, t] = value
            shape[key] = value.shape
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


def _read(e, t, now, history, given, shape, batch, graph):
    if e.delay == 0:
        return now[e.source, e.source_port]
    if t - e.delay >= 0:
        return history[(e.source, e.source_port), t - e.delay]
    if e.delay - t == 1 and (e.source, e.source_port) in given:
        return given[e.source, e.source_port].reshape(batch, -1)
    return np.zeros((batch, *_shape(graph, e.source)), F)


def _shape(graph, name):
    op = graph.operation(name)
    if isinstance(op, Linear):
        return op.weight.shape[:1]
    if isinstance(op, Population | Input):
        return op.shape
    shapes = [_shape(graph, e.source) for e in graph.incoming(name)]
    if isinstance(op, Concat):
        return (sum(s[0] for s in shapes),)
    return shapes[0]


def _step(name, op, sums, now, memory, inputs, t, results):
    match op:
        case Input():
            now[name, "out"] = inputs[name][t]
        case Linear():
            y = sums["in"] @ op.weight.T
            now[name, "out"] = y if op.bias is None else y + op.bias
        case OneToOne():
            now[name, "out"] = sums["in"] * (1 if op.weight is None else op.weight)
        case Add():
            now[name, "out"] = sums["in"]
        case Concat():
            now[name, "out"] = np.concatenate([sums[str(k)] for k in range(len(sums))], op.axis + 1)
        case Flatten():
            now[name, "out"] = sums["in"].reshape(len(sums["in"]), -1)
        case Output():
            results[name].append(sums["in"])
        case Population():
            scope = {**{k: F(v) for k, v in op.model.parameters.items()}, **{k: np.asarray(v, F) for k, v in op.parameters.items()}}
            scope.update(memory[name])
            scope.update(sums)
            for line in op.model.equations:
                scope[line.target] = evaluate(line.value, scope)
            memory[name] = {s: scope[s] for s in op.model.states}
            size = np.broadcast_shapes(*(v.shape for v in sums.values()))
            for key in {a.target for a in op.model.equations} | set(op.model.states):
                now[name, key] = np.broadcast_to(scope[key], size)


def _read_out(op, values):
    stack = np.stack(values)
    match op.readout:
        case "all":
            pass
        case "last":
            stack = stack[-1]
        case kind:
            stack = {"sum": np.sum, "mean": np.mean, "max": np.max}[kind](stack, axis=0)
    first = [] if op.layout.time_axis is None else [op.layout.time_axis]
    if op.layout.batch_axis is None:
        stack = stack[:, 0] if first else stack[0]
    else:
        first.append(op.layout.batch_axis)
    return np.moveaxis(stack, range(len(first)), first)
