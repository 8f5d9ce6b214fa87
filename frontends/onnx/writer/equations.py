"""Neuron equations as elementwise ONNX operators, in their author's order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from onnx import TensorProto

from snnc.compiler.ir.graph import Shape
from snnc.compiler.neurons.expression import Call, Expression, Number, Symbol
from snnc.frontends.onnx.operators.elementwise import DIRECT, EXTREMES, WAVES
from snnc.frontends.onnx.writer.builder import Builder, StepTensor

_OPERATORS: Final[Mapping[str, str]] = {primitive: operator for operator, primitive in (*DIRECT.items(), *EXTREMES.items(), *WAVES.items())}
_COMPARISONS: Final[Mapping[str, str]] = {"spike": "Greater", "gt": "Greater", "spike_ge": "GreaterOrEqual", "ge": "GreaterOrEqual"}


@dataclass(frozen=True)
class NodePlaces:
    """Where nodes go: those that depend on parameters only into the main graph, the others into the loop's body."""

    main: Builder
    body: Builder

    def of(self, values: list[StepTensor]) -> Builder:
        """Return the builder for a node that reads `values`."""
        return self.body if any(v.batched for v in values) else self.main


def print_expression(places: NodePlaces, expression: Expression, scope: Mapping[str, StepTensor], shape: Shape, hint: str) -> StepTensor:
    """Add the nodes that compute `expression`.

    Parameters
    ----------
    places
        Where they go.
    scope
        Values of the symbols.
    expression
        What to compute.
    shape
        Of the population.
    hint
        Base of the result's name.
    """
    match expression:
        case Number(value):
            return StepTensor(places.main.constants.floats(value, "number"), (), False)
        case Symbol(name):
            return scope[name]
        case Call("detach", (operand,)):
            return print_expression(places, operand, scope, shape, hint)
        case Call("spike" | "spike_ge" as function, (operand,)):
            given = [
                print_expression(places, operand, scope, shape, f"{hint}_above"),
                StepTensor(places.main.constants.floats(0.0, "number"), (), False),
            ]
            return _comparison(places.of(given), function, given, shape, hint)
        case Call(function, args):
            given = [print_expression(places, a, scope, shape, hint) for a in args]
            if function in _COMPARISONS:
                return _comparison(places.of(given), function, given, shape, hint)
            to, batched = places.of(given), any(v.batched for v in given)
            if function == "where":
                names = [_truth(to, given[0]), given[1].name, given[2].name]
                return StepTensor(to.node("Where", *names, hint=hint), shape, batched)
            return StepTensor(to.node(_OPERATORS[function], *(v.name for v in given), hint=hint), shape, batched)
    raise TypeError(expression)


def _comparison(to: Builder, function: str, given: list[StepTensor], shape: Shape, hint: str) -> StepTensor:
    truth = to.node(_COMPARISONS[function], *(v.name for v in given), hint=f"{hint}_fires")
    made = to.node("Cast", truth, hint=hint, to=TensorProto.FLOAT)
    return StepTensor(made, shape, any(v.batched for v in given), truth)


def _truth(to: Builder, value: StepTensor) -> str:
    """Name of the booleans ``value != 0``."""
    if value.truth is not None:
        return value.truth
    zero = to.constants.floats(0.0, "number")
    return to.node("Not", to.node("Equal", value.name, zero, hint=f"{value.name}_zero"), hint=f"{value.name}_nonzero")
