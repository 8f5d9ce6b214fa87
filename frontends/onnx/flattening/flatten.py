"""Flatten an ONNX graph: run it with known shapes, so that constants are evaluated and every other value becomes a node.

Loops and scans are unrolled; shape computations disappear.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from snnc.compiler.errors import SnncError
from snnc.frontends.onnx.errors import DataDependentError, MalformedGraphError, OnnxLimitError, UnsupportedOperatorError
from snnc.frontends.onnx.flattening import shaping
from snnc.frontends.onnx.flattening.node import Array, Node, NodePool, Shape, SubgraphRun, Tensor
from snnc.frontends.onnx.flattening.operation import OnnxOperation, Subgraph

Value: TypeAlias = "Node | tuple[Node, ...] | None"
"""A tensor, a sequence of tensors, or an omitted optional input."""

Scope: TypeAlias = dict[str, Value]

MAX_OPERATIONS: Final = 1_500_000
"""Maximum number of operations of a run; each iteration of a loop counts."""


class Run:
    """One run of a graph, with a limited number of operations; new nodes are added to `pool`.

    `step` is the time step of this run, if the file contains a single step and is run once per step. Tensors of nested graphs with a name
    in `watch` are recorded.
    """

    def __init__(
        self, pool: NodePool, handlers: Mapping[str, Handler], step: int | None = None, watch: Container[str] = frozenset()
    ) -> None:
        self.pool = pool
        self._handlers = handlers
        self._left = MAX_OPERATIONS
        self._levels: tuple[SubgraphRun, ...] = ()
        self._time = step
        self._watch = watch
        self.seen: dict[tuple[str, int], Node] = {}
        """Nodes of the recorded tensors, by name and iteration."""

    def inside(self, level: SubgraphRun, graph: Subgraph, arguments: Scope, outer: Scope) -> list[Value]:
        """Run a graph that is an attribute of a node; see :meth:`graph`."""
        self._levels = (*self._levels, level)
        results = self.graph(graph, arguments, outer)
        self._levels = self._levels[:-1]
        return results

    def graph(self, graph: Subgraph, arguments: Scope, outer: Scope | None = None) -> list[Value]:
        """Run `graph` on the values `arguments` of its inputs, and return its outputs; its nodes may also read the names in `outer`."""
        constants = {name: self.pool.const(value) for name, value in graph.constants.items()}
        scope: Scope = {**(outer or {}), **constants, **arguments}
        for operation in graph.operations:
            self._step(operation, scope)
        missing = [name for name in graph.outputs if name not in scope]
        if missing:
            raise MalformedGraphError(f"the output '{missing[0]}' of graph '{graph.name}' is not computed by any node.")
        return [scope[name] for name in graph.outputs]

    def _step(self, operation: OnnxOperation, scope: Scope) -> None:
        """Run one operation, and add its results to `scope`."""
        self._left -= 1
        if self._left < 0:
            raise OnnxLimitError(f"unrolling the loops needs more than {MAX_OPERATIONS:,} operations; export a single step instead.")
        handler = self._handlers.get(operation.op)
        if handler is None:
            raise UnsupportedOperatorError(
                f"{operation.where}: snnc does not read the operator {operation.op}; "
                "docs/reference/onnx.md lists the supported operators. Rewrite the layer with these."
            )
        try:
            arguments = [scope[name] if name else None for name in operation.inputs]
        except KeyError as error:
            raise MalformedGraphError(f"{operation.where} reads {error}, which no node, input or initializer defines.") from None
        try:
            results = handler(OperatorCall(self, operation, arguments, scope))
        except SnncError:
            raise
        except (ValueError, TypeError, IndexError, AttributeError, ArithmeticError) as error:
            raise MalformedGraphError(
                f"{operation.where}: its inputs or attributes do not fit the operator ({str(error)[:120]})."
            ) from None
        for name, value in zip(operation.outputs, results, strict=False):
            if name:
                scope[name] = value
                if isinstance(value, Node) and value.value is None and value.id not in self.pool.tensors:
                    self.pool.tensors[value.id] = Tensor(name, self._levels, self._time)
                if name in self._watch and self._levels and isinstance(value, Node):
                    self.seen[name, self._levels[-1].trip] = value


@dataclass(eq=False, slots=True)
class OperatorCall:
    """One call of an operator: the argument of its handler.

    The methods that return an input or attribute raise a MalformedGraphError if it is missing or has another type, and a DataDependentError
    if it must be constant but depends on the network's data.
    """

    run: Run
    operation: OnnxOperation
    arguments: list[Value]
    scope: Scope

    @property
    def pool(self) -> NodePool:
        """Pool for new nodes."""
        return self.run.pool

    @property
    def where(self) -> str:
        """Name of the node in messages."""
        return self.operation.where

    def has(self, index: int) -> bool:
        """Return whether an optional input is given."""
        return self._argument(index) is not None

    def _argument(self, index: int) -> Value:
        return self.arguments[index] if index < len(self.arguments) else None

    def node(self, index: int) -> Node:
        """Return a tensor input."""
        if not isinstance(value := self._argument(index), Node):
            raise MalformedGraphError(f"{self.where}: its input {index} is missing or not a tensor.")
        return value

    def nodes(self) -> list[Node]:
        """Return all inputs as tensors."""
        return [self.node(k) for k in range(len(self.arguments))]

    def sequence(self, index: int) -> tuple[Node, ...]:
        """Return a sequence input."""
        if not isinstance(value := self._argument(index), tuple):
            raise MalformedGraphError(f"{self.where}: its input {index} is not a sequence of tensors.")
        return value

    def array(self, index: int, what: str) -> Array:
        """Return the value of an input that must be constant."""
        value = self.node(index).value
        if value is None:
            raise DataDependentError(f"{self.where}: its {what} depends on the network's data; snnc requires a constant.")
        return value

    def ints(self, index: int, what: str) -> tuple[int, ...]:
        """Return a constant input as integers."""
        return tuple(int(v) for v in self.array(index, what).reshape(-1))

    def elementwise(self, op: str, *operands: Node | float) -> Node:
        """Return an elementwise function of nodes and numbers."""
        return shaping.elementwise(self.pool, op, *(n if isinstance(n, Node) else self.pool.number(n) for n in operands))

    def attribute(self, name: str, default: Any = None) -> Any:
        """Return an attribute, or `default`."""
        return self.operation.attributes.get(name, default)

    def integer(self, name: str, default: int = 0) -> int:
        """Return an integer attribute."""
        value = self.attribute(name, default)
        if not isinstance(value, int):
            raise MalformedGraphError(f"{self.where}: its attribute '{name}' is not an integer.")
        return value

    def flag(self, name: str, default: int = 0) -> bool:
        """Return an attribute that must be 0 or 1, because readers interpret other values differently."""
        value = self.integer(name, default)
        if value not in (0, 1):
            raise MalformedGraphError(f"{self.where}: its attribute '{name}' is {value}; it must be 0 or 1.")
        return value == 1

    def numbers(self, name: str, default: Shape) -> Shape:
        """Return an attribute with as many integers as `default`, which is returned if the attribute is missing."""
        value = self.attribute(name)
        if value is None:
            return default
        if not isinstance(value, tuple) or len(value) != len(default):
            raise MalformedGraphError(f"{self.where}: its attribute '{name}' is {value}; it must have {len(default)} numbers.")
        return tuple(int(v) for v in value)

    def axes(self, rank: int, index: int) -> tuple[int, ...] | None:
        """Return the axes of an operator, from its attribute or, in later opsets, from input `index`; None if neither is given."""
        listed = self.ints(index, "axes") if self.has(index) else self.attribute("axes")
        return tuple(self.axis(a, rank) for a in listed) if isinstance(listed, tuple) else None

    def axis(self, axis: int, rank: int) -> int:
        """Return an axis of a value with `rank` axes as a non-negative number."""
        if not -rank <= axis < rank:
            raise MalformedGraphError(f"{self.where}: axis {axis} is outside a value of rank {rank}.")
        return axis % rank


Handler: TypeAlias = Callable[[OperatorCall], list[Value]]
"""A function that creates the nodes of one operator; if it returns fewer values than outputs, files may not read the last ones."""
