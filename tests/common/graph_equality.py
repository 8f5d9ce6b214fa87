"""Equality of graphs: the same network, represented in the same way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields

import numpy as np

from snnc.compiler.ir.graph import Array, Graph
from snnc.compiler.neurons.neuron import NeuronModel


def differences(one: Graph, other: Graph) -> list[str]:
    """Return the differences between two graphs as sentences; an empty list if they are equal.

    The comparison covers the whole graph: names and order of nodes and edges, operations, ports, delays, layouts, neuron models,
    surrogates, learnable parameters, state inputs, idle inputs, steps, name and assumptions. Arrays are equal if their shapes are, and
    their values in float32, the type used to compute networks.
    """
    return list(_differences(one, other))


def _differences(one: Graph, other: Graph) -> Iterator[str]:
    for what in ("name", "steps", "state_inputs", "idle_inputs", "assumptions", "names"):
        first, second = getattr(one, what), getattr(other, what)
        if first != second or (isinstance(first, dict) and list(first) != list(second)):
            yield f"{what}: {first} and {second}"
    for name in one.names:
        if name not in other.nx:
            continue
        yield from _operations(name, one.operation(name), other.operation(name))
        for way in ("incoming", "outgoing"):
            first, second = (getattr(graph, way)(name) for graph in (one, other))
            if first != second:
                yield f"{way} edges of {name!r}: {first} and {second}"


def _operations(name: str, one: object, other: object) -> Iterator[str]:
    if type(one) is not type(other):
        yield f"{name!r}: {type(one).__name__} and {type(other).__name__}"
        return
    for field in fields(one):  # type: ignore[arg-type]  # every operation is a dataclass
        first, second = getattr(one, field.name), getattr(other, field.name)
        if not _same(first, second):
            yield f"{field.name} of {name!r}: {first} and {second}"


def _same(one: object, other: object) -> bool:
    match one, other:
        case NeuronModel(), NeuronModel():
            return one == other and list(one.states) == list(other.states)
        case Mapping(), Mapping():
            return one.keys() == other.keys() and all(_same(one[k], other[k]) for k in one)
        case (np.ndarray() | np.generic(), _) | (_, np.ndarray() | np.generic()):
            return one is not None and other is not None and _equal(np.asarray(one), np.asarray(other))
        case _:
            return type(one) is type(other) and one == other


def _equal(one: Array, other: Array) -> bool:
    if one.shape != other.shape:
        return False
    if one.dtype.kind == other.dtype.kind != "f":
        return bool(np.array_equal(one, other))
    with np.errstate(over="ignore"):
        return bool(np.array_equal(one.astype(np.float32), other.astype(np.float32)))
