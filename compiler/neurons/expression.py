"""Expression language of neuron equations, as an immutable tree.

::

    expression = Number | Symbol | Call
    Call       = function (expression, ...)      functions and their numbers of arguments: FUNCTIONS

Text is parsed by Python's :mod:`ast`, with a list of permitted node types; it is never evaluated. The tree keeps the
author's order of operations, because float32 results depend on it.
"""

from __future__ import annotations

import ast
import math
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from snnc.compiler.errors import EquationError

SPIKES: Final = ("spike", "spike_ge")
"""Functions whose value is 1 where a neuron fires."""
MAX_TEXT: Final = 20_000
"""Maximum number of characters of a text."""
MAX_DEPTH: Final = 200
"""Maximum nesting of calls in an expression, below Python's limit of recursion."""
_PARSER: Final = threading.Lock()
"""Lock of Python's parser: CPython 3.11 counts the depth of a tree for all threads together, and fails if they disturb the count
(https://github.com/python/cpython/issues/106905)."""


@dataclass(frozen=True, slots=True)
class Number:
    """A constant."""

    value: float


@dataclass(frozen=True, slots=True)
class Symbol:
    """A named value: a state, an input port, a parameter or an earlier assignment."""

    name: str


@dataclass(frozen=True, slots=True)
class Call:
    """A function of :data:`LOWERED` applied to its arguments."""

    function: str
    args: tuple[Expression, ...]


Expression: TypeAlias = Number | Symbol | Call

FUNCTIONS: Final[Mapping[str, int]] = {
    **dict.fromkeys(("add", "sub", "mul", "div", "pow", "min", "max"), 2),
    **dict.fromkeys(("neg", "exp", "log", "sqrt", "abs", "sign", "tanh", "sigmoid", "erf", "sin", "cos"), 1),
    "spike": 1,  # 1 where x > 0, else 0; its derivative is the surrogate
    "spike_ge": 1,  # 1 where x >= 0, else 0; its derivative is the surrogate
    "detach": 1,  # x, with derivative 0
    "gt": 2,  # 1 where a > b, else 0; derivative 0
    "ge": 2,  # 1 where a >= b, else 0; derivative 0
    "where": 3,  # b where a != 0, else c; no derivative through a
}
"""Number of arguments of each function."""
ROUND: Final = "float16"
"""x rounded to the nearest float16 number, ties to even, with the derivative 1. The lowering adds it; users' text cannot contain it."""
LOWERED: Final[Mapping[str, int]] = {**FUNCTIONS, ROUND: 1}
"""Number of arguments of each function of lowered equations."""

_BINARY: Final[Mapping[type[ast.operator], str]] = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.Pow: "pow"}
_TEXT: Final[Mapping[str, tuple[str, int]]] = {"add": ("+", 1), "sub": ("-", 1), "mul": ("*", 2), "div": ("/", 2)}
"""Sign and precedence of operators."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """``target = value``, elementwise over the neurons of a population."""

    target: str
    value: Expression

    def __str__(self) -> str:
        return f"{self.target} = {to_text(self.value)}"


def call(function: str, *args: Expression | float, functions: Mapping[str, int] = FUNCTIONS) -> Call:
    """Return a call of `function`; plain numbers become :class:`Number`.

    Raises an EquationError if `functions` does not contain the function with this number of arguments.
    """
    if functions.get(function) != len(args):
        raise EquationError(
            f"'{function}' with {len(args)} argument(s) is not in the equation language; "
            f"its functions are {', '.join(f'{name}/{arity}' for name, arity in FUNCTIONS.items())}."
        )
    return Call(function, tuple(Number(float(a)) if isinstance(a, int | float) else a for a in args))


def parse_assignments(text: str, functions: Mapping[str, int] = FUNCTIONS) -> tuple[Assignment, ...]:
    """Parse lines of ``name = expression`` with calls of `functions`; ``#`` starts a comment.

    Anything else raises an EquationError, whose message contains the line.
    """
    if len(text) > MAX_TEXT:
        raise EquationError(f"the equations are {len(text)} characters long; the limit is {MAX_TEXT}.")
    lines = [line.strip() for line in text.strip().splitlines()]
    try:
        with _PARSER:
            module = ast.parse("\n".join(lines), mode="exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise EquationError(f"the equations cannot be parsed: {error}. Write one 'name = expression' per line.") from None
    assignments = []
    for statement in module.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                assignments.append(Assignment(_name(name), _from_ast(value, 0, functions)))
            case _:
                raise EquationError(f"line {statement.lineno} of the equations is not 'name = expression'.")
    return tuple(assignments)


def parse_expression(text: str) -> Expression:
    """Parse one expression; see :func:`parse_assignments`."""
    if len(text) > MAX_TEXT:
        raise EquationError(f"the expression is {len(text)} characters long; the limit is {MAX_TEXT}.")
    try:
        with _PARSER:
            tree = ast.parse(text.strip(), mode="eval")
        return _from_ast(tree.body, 0, FUNCTIONS)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise EquationError(f"the expression {text[:60]!r} cannot be parsed: {error}.") from None


def _name(name: str) -> str:
    if "__" in name or not name.isascii():
        raise EquationError(f"the name {name!r} cannot be used: names must be ASCII without double underscores.")
    return name


def _from_ast(node: ast.expr, depth: int, functions: Mapping[str, int]) -> Expression:
    """Convert a node of Python's syntax tree; `depth` is its distance from the root."""
    if depth > MAX_DEPTH:
        raise EquationError(f"the expression is nested deeper than {MAX_DEPTH} levels.")
    match node:
        case ast.Constant(value=bool()):
            pass
        case ast.Constant(value=int() | float() as value):
            return Number(_finite(value))
        case ast.Name(id=name):
            return Symbol(_name(name))
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)) if not isinstance(value, bool):
            return Number(-_finite(value))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return Call("neg", (_from_ast(operand, depth + 1, functions),))
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _from_ast(operand, depth + 1, functions)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return Call(_BINARY[type(op)], (_from_ast(left, depth + 1, functions), _from_ast(right, depth + 1, functions)))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in functions:
            return call(name, *(_from_ast(a, depth + 1, functions) for a in args), functions=functions)
        case ast.Call(func=ast.Name(id=name)) if name in functions:
            raise EquationError(f"the arguments of '{name}' must be positional.")
        case ast.Call(func=ast.Name(id=name)):
            raise EquationError(f"the function '{name}' is unknown; use {', '.join(FUNCTIONS)}.")
    raise EquationError(f"{_excerpt(node)} is not allowed in equations.")


def _finite(value: float) -> float:
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise EquationError("a constant of the equations is not a finite number.")
    return number


def _excerpt(node: ast.expr) -> str:
    try:
        return f"'{ast.unparse(node)[:60]}'"
    except (RecursionError, ValueError):
        return f"a {type(node).__name__}"


def to_text(expression: Expression) -> str:
    """Return `expression` as text, from which :func:`parse_expression` returns an equal expression (if it does not contain `ROUND`)."""
    return _text(expression, 0)


def _text(expression: Expression, outer: int) -> str:
    """Return an expression as text, in parentheses where the operator around it, of precedence `outer`, requires them."""
    match expression:
        case Number(value):
            text = repr(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)
            if math.copysign(1.0, value) < 0 and value == 0:
                text = "-0.0"
            return f"({text})" if text.startswith("-") and outer else text
        case Symbol(name):
            return name
        case Call("neg", (Number() as number,)):
            return f"neg({_text(number, 0)})"
        case Call("neg", (operand,)):
            text = f"-{_text(operand, 3)}"
            return f"({text})" if outer else text
        case Call(function, (left, right)) if function in _TEXT:
            sign, level = _TEXT[function]
            text = f"{_text(left, level)} {sign} {_text(right, level + 1)}"
            return f"({text})" if outer > level else text
        case Call(function, args):
            return f"{function}({', '.join(_text(a, 0) for a in args)})"
    raise TypeError(expression)


def symbols(expression: Expression) -> Iterator[str]:
    """Yield the names that `expression` reads, left to right, repeated as often as they occur."""
    match expression:
        case Symbol(name):
            yield name
        case Call(_, args):
            for argument in args:
                yield from symbols(argument)


def calls(expression: Expression) -> Iterator[Call]:
    """Yield the calls in `expression`, each before those in its arguments."""
    if isinstance(expression, Call):
        yield expression
        for argument in expression.args:
            yield from calls(argument)


def substitute(expression: Expression, values: Mapping[str, Expression]) -> Expression:
    """Replace symbols by expressions; names not in `values` are unchanged."""
    match expression:
        case Symbol(name):
            return values.get(name, expression)
        case Call(function, args):
            return Call(function, tuple(substitute(a, values) for a in args))
    return expression


def transform(expression: Expression, rule: Callable[[Expression], Expression]) -> Expression:
    """Rebuild `expression` from its leaves upwards, and apply `rule` to each rebuilt node."""
    if isinstance(expression, Call):
        expression = Call(expression.function, tuple(transform(a, rule) for a in expression.args))
    return rule(expression)
