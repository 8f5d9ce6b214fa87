"""Base class of connections, and functions that draw their weights, or check weights that the user gives."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from snnc.compiler.errors import EmptyShapeError, TooLargeError
from snnc.compiler.ir.arrays.randomness import Stream
from snnc.compiler.ir.arrays.sizes import check_memory, check_size
from snnc.compiler.ir.graph import Array, Operation, Shape
from snnc.frontends.dsl.errors import ConnectionShapeError, InitialiserError
from snnc.frontends.dsl.initialisers import FanIn, Fans, Initialiser, KaimingNormal, KaimingUniform, Orthogonal, XavierNormal, XavierUniform

Weights: TypeAlias = "npt.ArrayLike | Initialiser"
Seed: TypeAlias = Sequence[int]
_WEIGHTS_ONLY: Final = (XavierUniform, XavierNormal, KaimingUniform, KaimingNormal, Orthogonal)
"""Initialisers that, as in PyTorch, cannot draw a bias."""


@dataclass(frozen=True)
class Branch:
    """Operations applied in order to the source's value of `delay` steps ago; the branches of a connection are summed."""

    operations: tuple[Operation, ...]
    delay: int = 0


class Connection(ABC):
    """A connection between two nodes, such as a weight matrix, a convolution or a pooling.

    In methods, `source` and `target` are shapes, and `where` names the connection in messages. The suffix of a class such as
    ``ConvConnection``, which is ``snnc.Conv``, distinguishes it from the operation ``Conv`` of a graph.
    """

    @property
    def public_name(self) -> str:
        """Public name of the class, for example ``"Conv"``."""
        return type(self).__name__.removesuffix("Connection")

    def __repr__(self) -> str:
        connection: Any = self
        shown = [f.name for f in fields(connection)] if is_dataclass(connection) else []
        return f"{self.public_name}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

    def shape_after(self, source: Shape, where: str) -> Shape | None:
        """Return the shape of the result, by default `source`, or None if it depends on the target."""
        return source

    @abstractmethod
    def build(self, source: Shape, target: Shape | None, seed: Seed, where: str) -> tuple[Branch, ...]:
        """Return the branches of the connection; if `target` is None, their result has the shape from :meth:`shape_after`.

        Raises
        ------
        SnncError
            A shape, a setting or an array does not fit.
        """


def check_target(connection: Connection, source: Shape, target: Shape | None, where: str) -> Shape:
    """Return the result shape of `connection`, or raise a ConnectionShapeError if it is unknown or differs from that of `target`."""
    result = connection.shape_after(source, where)
    expected = result if target is None else target
    if expected is None:
        name = connection.public_name
        advice = "Dense(n)" if name == "Dense" else f"{name}(outputs=n)"
        raise ConnectionShapeError(f"{where}: {name} does not define its number of outputs; write {advice} if no population follows.")
    if result not in (None, expected):
        raise ConnectionShapeError(
            f"{where}: {connection.public_name} returns {result} from the source's shape {source}, but the target has shape {expected}; "
            "give the target the shape that net.shape_after(source, connection) returns, or change the connection."
        )
    return expected


def generator(own_seed: int | None, seed: Seed, where: str) -> Stream:
    """Return a connection's random stream, from its own seed if given, else from `seed`; an invalid seed raises an InitialiserError."""
    try:
        return Stream(list(seed) if own_seed is None else own_seed)
    except (TypeError, ValueError):
        raise InitialiserError(f"{where}: the seed is {own_seed!r}; it must be a whole number of 0 or more.") from None


def check_weights(shape: Shape, what: str) -> None:
    """Raise a ConnectionShapeError if there would be no weights, or too many, before memory is allocated."""
    try:
        check_size(shape, what)
        check_memory(math.prod(shape), what)
    except (EmptyShapeError, TooLargeError) as error:
        raise ConnectionShapeError(error.text) from None


def realise(init: Weights, shape: Shape, fans: Fans, rng: np.random.Generator, what: str) -> Array:
    """Draw weights from an initialiser, or check given ones.

    Raises a ConnectionShapeError if given weights have a different shape, or there would be none or too many; raises an InitialiserError if
    `init` is neither an array nor an initialiser, cannot draw weights of this shape, or results in NaN or infinity.
    """
    if isinstance(init, type | str) or callable(init):
        raise InitialiserError(f"{what}: {init!r} is neither an array nor an initialiser such as snnc.Normal(0.1).")
    check_weights(shape, what)
    try:
        drawn = init.draw(shape, fans, rng) if is_initialiser(init) else init  # type: ignore[union-attr]
        values = np.array(drawn, dtype=np.float32)
    except (TypeError, ValueError, ArithmeticError) as error:
        raise InitialiserError(f"{what} cannot be created: {error}.") from None
    if values.shape != shape:
        raise ConnectionShapeError(f"{what} has shape {values.shape}; this connection needs {shape}.")
    if not np.isfinite(values).all():
        raise InitialiserError(f"{what} contains NaN or infinity at {int((~np.isfinite(values)).sum())} of {values.size} places.")
    return values


def realise_bias(bias: bool | Weights, init: Weights, outputs: int, fans: Fans, rng: np.random.Generator, where: str) -> Array | None:
    """Draw or check the bias of a connection whose weights come from `init`; return None without a bias.

    If `bias` is True, `init` draws it if it is an initialiser that can draw a bias, and FanIn otherwise. Raises the errors of
    :func:`realise`.
    """
    if not isinstance(bias, bool | np.bool_):
        return realise(bias, (outputs,), fans, rng, f"the bias of {where}")
    if not bias:
        return None
    initialiser = init if is_initialiser(init) and not isinstance(init, _WEIGHTS_ONLY) else FanIn()
    return realise(initialiser, (outputs,), fans, rng, f"the bias of {where}")


def is_initialiser(init: object) -> bool:
    """Return whether `init` is an initialiser rather than an array."""
    return hasattr(init, "draw")
