"""Graphs run by PyTorch, operation by operation and step by step, independently of passes, lowering and kernels."""

from __future__ import annotations

import networkx as nx
import numpy as np
import torch
from torch_windows import convolve, pool

from snnc.compiler.ir.graph import (
    Add,
    Concat,
    Conv,
    Flatten,
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
)
from snnc.compiler.ir.shapes import port_map
from snnc.compiler.neurons.expression import Call, Number, Symbol
from snnc.compiler.neurons.surrogates.library import atan

UNARY = {
    "neg": torch.neg,
    "exp": torch.exp,
    "log": torch.log,
    "sqrt": torch.sqrt,
    "abs": torch.abs,
    "sign": torch.sign,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "detach": torch.Tensor.detach,
}
BINARY = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "div": torch.div,
    "pow": torch.pow,
    "min": torch.minimum,
    "max": torch.maximum,
    "gt": lambda a, b: (a > b).to(a.dtype),
    "ge": lambda a, b: (a >= b).to(a.dtype),
}


class Spike(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, derivative, equal):
        ctx.save_for_backward(x)
        ctx.derivative = derivative
        return ((x >= 0) if equal else (x > 0)).to(x.dtype)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * value_of(ctx.derivative, {"x": x}, ctx.derivative, x.dtype), None, None


def value_of(expression, names, derivative, dtype):
    match expression:
        case Number(value):
            return torch.tensor(value, dtype=dtype)
        case Symbol(name):
            return names[name]
        case Call("spike" | "spike_ge" as function, (x,)):
            return Spike.apply(value_of(x, names, derivative, dtype), derivative, function == "spike_ge")
        case Call("where", args):
            a, b, c = (value_of(x, names, derivative, dtype) for x in args)
            return torch.where(a != 0, b, c)
        case Call(function, args):
            return (UNARY | BINARY)[function](*(value_of(a, names, derivative, dtype) for a in args))
    raise TypeError(expression)


def reduced(operation, x):
    """Reduce, where the first of equal maxima gets the gradient, as in torch.max along one axis."""
    dimensions = x.ndim - 1
    axes = sorted(a % dimensions + 1 for a in operation.axes)
    rest = [i for i in range(1, dimensions + 1) if i not in axes]
    shape = [1 if i in axes else n for i, n in enumerate(x.shape) if operation.keepdims or i not in axes]
    values = x.permute(0, *rest, *axes).flatten(1 + len(rest))
    value = {"sum": lambda v: v.sum(-1), "mean": lambda v: v.mean(-1), "max": lambda v: v.max(-1).values}[operation.kind](values)
    return value.reshape(shape)


class TorchGraph(torch.nn.Module):
    """`graph` with one parameter for each array, named like labels of ``state_dict``, including dots."""

    def __init__(self, graph, surrogate=None, dtype=torch.float64):
        super().__init__()
        self.graph, self.dtype, self.surrogate = graph, dtype, surrogate or atan(2.0)
        self.values = {}
        self.ports = port_map(graph)
        for name in graph.names:
            operation = graph.operation(name)
            if isinstance(operation, Linear | Sparse | OneToOne | Conv | Scale) and operation.weight is not None:
                self._add(f"{name}.weight", operation.weight, operation.learnable)
                if getattr(operation, "bias", None) is not None:
                    self._add(f"{name}.bias", operation.bias, operation.learnable)
            if isinstance(operation, Population):
                for parameter, default in operation.model.parameters.items():
                    given = operation.parameters.get(parameter, default)
                    self._add(f"{name}.{parameter}", given, parameter in operation.learnable)
        immediate = nx.DiGraph()
        immediate.add_nodes_from(graph.names)
        immediate.add_edges_from((e.source, e.target) for e in graph.edges if e.delay == 0)
        self.order = list(nx.topological_sort(immediate))

    def _add(self, label, value, learnable):
        tensor = torch.tensor(np.asarray(value, dtype=np.float32), dtype=self.dtype, requires_grad=learnable)
        self.values[label] = tensor

    def learnable(self):
        return {label: value for label, value in self.values.items() if value.requires_grad}

    def forward(self, inputs, initial=None):
        """Input name -> [T, B, *shape] to output name -> [T, B, *shape].

        `initial`: (population, state) or (population, port, "port") -> [B, *shape].
        """
        initial = initial or {}
        steps, batch = next(iter(inputs.values())).shape[:2]
        history, states, self.batch = {}, {}, batch
        for name, population in self.graph.of_type(Population):
            for state, default in population.model.states.items():
                value = torch.tensor(np.asarray(population.initial.get(state, default), dtype=np.float32), dtype=self.dtype)
                states[name, state] = initial.get((name, state), value.expand(batch, *population.shape))
        for t in range(steps):
            for name in self.order:
                self._step(name, t, inputs, history, states, initial, batch)
        return {name: torch.stack(history[name, "out"]) for name, _ in self.graph.of_type(Output)}

    def _read(self, edge, t, history, initial):
        if t >= edge.delay:
            return history[edge.source, edge.source_port][t - edge.delay]
        population = self.graph.operation(edge.source)
        zeros = torch.zeros(self.batch, *self.ports[edge.source, edge.source_port].shape, dtype=self.dtype)
        if isinstance(population, Population) and edge.source_port in population.model.states:
            first = population.initial.get(edge.source_port, population.model.states[edge.source_port])
            zeros = zeros + torch.tensor(np.asarray(first), dtype=self.dtype)
        return initial.get((edge.source, edge.source_port, "port"), zeros)

    def _arrivals(self, name, t, history, initial, port=None):
        return [self._read(e, t, history, initial) for e in self.graph.incoming(name, port)]

    def _step(self, name, t, inputs, history, states, initial, batch):
        operation = self.graph.operation(name)
        if isinstance(operation, Population):
            return self._population(name, operation, t, history, states, initial, batch)
        arrivals = [] if isinstance(operation, Input) else self._arrivals(name, t, history, initial)
        match operation:
            case Input():
                value = inputs[name][t]
            case Linear():
                value = arrivals[0].reshape(batch, -1) @ self.values[f"{name}.weight"].T
                value = value + self.values[f"{name}.bias"] if operation.bias is not None else value
            case Sparse(shape=shape, indices=indices, indptr=indptr):
                rows = torch.tensor([row for row in range(shape[0]) for _ in range(indptr[row], indptr[row + 1])])
                places = (rows, torch.tensor(indices, dtype=torch.int64))
                weight = torch.zeros(shape, dtype=self.dtype).index_put(places, self.values[f"{name}.weight"])
                value = arrivals[0].reshape(batch, -1) @ weight.T
                value = value + self.values[f"{name}.bias"] if operation.bias is not None else value
            case Conv():
                value = convolve(operation, arrivals[0], self.values[f"{name}.weight"], self.values.get(f"{name}.bias"))
            case Pool():
                value = pool(operation, arrivals[0])
            case Scale():
                value = arrivals[0] * self.values[f"{name}.weight"]
                value = value + self.values[f"{name}.bias"] if operation.bias is not None else value
            case Reshape(shape=shape):
                value = arrivals[0].reshape(batch, *shape)
            case Reduce():
                value = reduced(operation, arrivals[0])
            case Slice(axis=axis, start=start, stop=stop):
                value = arrivals[0].narrow(axis + 1 if axis >= 0 else axis, start, stop - start)
            case Pad(padding=padding):
                value = torch.nn.functional.pad(arrivals[0], [n for pair in reversed(padding) for n in pair])
            case OneToOne():
                value = arrivals[0] * self.values[f"{name}.weight"] if operation.weight is not None else arrivals[0]
            case Concat(axis=axis):
                parts = range(len(self.graph.incoming(name)))
                value = torch.cat([self._arrivals(name, t, history, initial, str(p))[0] for p in parts], axis + 1)
            case Flatten():
                value = arrivals[0].flatten(1)
            case Add() | Output():
                value = sum(arrivals[1:], arrivals[0])
        history.setdefault((name, "out"), []).append(value)

    def _population(self, name, operation, t, history, states, initial, batch):
        model, shape = operation.model, (batch, *operation.shape)
        names = {p: self.values[f"{name}.{p}"] for p in model.parameters} | {s: states[name, s] for s in model.states}
        for port in model.inputs:
            total = torch.zeros(shape, dtype=self.dtype)
            for value in self._arrivals(name, t, history, initial, port):
                total = total + value.reshape(shape)
            names[port] = total
        derivative = (operation.surrogate or self.surrogate).derivative
        for assignment in model.equations:
            names[assignment.target] = value_of(assignment.value, names, derivative, self.dtype)
        for state in model.states:
            states[name, state] = names[state].expand(shape)
        for port in {*model.outputs, *model.states, *(a.target for a in model.equations)}:
            history.setdefault((name, port), []).append(names[port].expand(shape))
