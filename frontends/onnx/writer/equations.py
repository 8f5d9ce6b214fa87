"""Convert neuron equations to elementwise ONNX operators, or each neuron model to an ONNX function."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from onnx import FunctionProto, TensorProto, helper, numpy_helper

from snnc.compiler.ir.graph import Graph, Population, Shape
from snnc.compiler.neurons.expression import Call, Expression, Number, Symbol
from snnc.compiler.neurons.neuron import NeuronModel
from snnc.frontends.onnx.operators.elementwise import DIRECT, EXTREMES, WAVES
from snnc.frontends.onnx.writer.builder import Builder, Constants, Names, StepTensor

_OPERATORS: Final[Mapping[str, str]] = {primitive: operator for operator, primitive in (*DIRECT.items(), *EXTREMES.items(), *WAVES.items())}
"""ONNX operator by function of the equation language."""
_COMPARISONS: Final[Mapping[str, str]] = {"spike": "Greater", "gt": "Greater", "spike_ge": "GreaterOrEqual", "ge": "GreaterOrEqual"}
"""ONNX operator by comparison; its result is cast to float."""


@dataclass(frozen=True)
class NodePlaces:
    """Builders for nodes: nodes that only depend on parameters belong to the main graph, others to the loop's body."""

    main: Builder
    body: Builder

    def of(self, values: list[StepTensor]) -> Builder:
        """Return the builder for a node that reads `values`."""
        return self.body if any(v.batched for v in values) else self.main


def add_expression(places: NodePlaces, expression: Expression, scope: Mapping[str, StepTensor], shape: Shape, hint: str) -> StepTensor:
    """Add the nodes that compute `expression`, and return its tensor, whose name begins with `hint`.

    `scope` contains the tensor of each symbol, and `shape` is the shape of the population.
    """
    match expression:
        case Number(value):
            return StepTensor(places.main.constants.floats(value, "number"), (), False)
        case Symbol(name):
            return scope[name]
        case Call("detach", (operand,)):
            return add_expression(places, operand, scope, shape, hint)
        case Call("spike" | "spike_ge", (operand,)):
            args, inner_hint = (operand, Number(0.0)), f"{hint}_above"
        case Call(_, args):
            inner_hint = hint
        case _:
            raise TypeError(expression)
    operands = [add_expression(places, a, scope, shape, inner_hint) for a in args]
    to, function, names, batched = places.of(operands), expression.function, [v.name for v in operands], any(v.batched for v in operands)
    if function in _COMPARISONS:
        truth = to.node(_COMPARISONS[function], *names, hint=f"{hint}_fires")
        return StepTensor(to.node("Cast", truth, hint=hint, to=TensorProto.FLOAT), shape, batched, truth)
    if function == "where":
        names[0] = _truth(to, operands[0])
    return StepTensor(to.node(_OPERATORS[function], *names, hint=hint), shape, batched)


def _truth(to: Builder, value: StepTensor) -> str:
    if value.truth is not None:
        return value.truth
    zero = to.constants.floats(0.0, "number")
    return to.node("Not", to.node("Equal", value.name, zero, hint=f"{value.name}_zero"), hint=f"{value.name}_nonzero")


DOMAIN: Final = "ai.snnc"
"""Domain of the functions."""
DOMAIN_VERSION: Final = 1


@dataclass(frozen=True)
class NeuronFunction:
    """A neuron model as an ONNX function, whose inputs are the model's input ports, states and parameters."""

    name: str  # operator type of its nodes
    results: tuple[str, ...]  # ports and states, in the order of the outputs
    unbatched: frozenset[str]  # results that only depend on parameters and constants, and therefore have no batch axis
    proto: FunctionProto


def neuron_functions(graph: Graph, opset: int) -> list[tuple[NeuronModel, NeuronFunction]]:
    """Return a function for each distinct model of `graph`, in node order."""
    names, functions = Names([]), list[tuple[NeuronModel, NeuronFunction]]()
    read: dict[str, set[str]] = {}
    for edge in graph.edges:
        read.setdefault(edge.source, set()).add(edge.source_port)
    populations = dict(graph.of_type(Population))
    for model in [p.model for p in populations.values()]:
        if all(model != known for known, _ in functions):
            ports = {port for name, p in populations.items() if p.model == model for port in read.get(name, ())}
            functions.append((model, _function(model, ports, names.fresh(_identifier(model.name)), opset)))
    return functions


def _identifier(text: str) -> str:
    clean = re.sub(r"[^A-Za-z0-9_]", "_", text)[:60]
    return clean if clean[:1].isalpha() else f"Neuron{clean}"


def _function(model: NeuronModel, read: set[str], name: str, opset: int) -> NeuronFunction:
    """Return the function for a model; `read` are the ports that edges read."""
    inputs = [*model.inputs, *model.states, *model.parameters]
    others = [a.target for a in model.equations if a.target in read]
    results = tuple(dict.fromkeys([*model.outputs, *model.states, *others]))
    names = Names(inputs)
    outputs = {result: names.fresh(f"{result}_next" if result in model.states else result) for result in results}
    constants = Constants(names)
    body = Builder(names, constants)
    scope = {n: StepTensor(n, (), n not in model.parameters) for n in inputs}
    for assignment in model.equations:
        scope[assignment.target] = add_expression(NodePlaces(body, body), assignment.value, scope, (), assignment.target)
    _name_results(body, {output: scope[result].name for result, output in outputs.items()})
    constant_nodes = [helper.make_node("Constant", [], [n], value=numpy_helper.from_array(a, n)) for n, a in constants.arrays.items()]
    nodes, opsets = [*constant_nodes, *body.nodes], [helper.make_opsetid("", opset)]
    proto = helper.make_function(DOMAIN, name, inputs, list(outputs.values()), nodes, opsets, doc_string=model.text)
    return NeuronFunction(name, results, frozenset(r for r in results if not scope[r].batched), proto)


def _name_results(body: Builder, results: dict[str, str]) -> None:
    """Rename values of `body` to the names of the outputs, by an Identity if no node computes the value or it serves several outputs."""
    computed = {output for node in body.nodes for output in node.output}
    renamed = {value: output for output, value in reversed(results.items()) if value in computed}
    for node in body.nodes:
        for names in (node.input, node.output):
            names[:] = [renamed.get(name, name) for name in names]
    for output, value in results.items():
        if renamed.get(value) != output:
            body.node("Identity", renamed.get(value, value), out=output)
