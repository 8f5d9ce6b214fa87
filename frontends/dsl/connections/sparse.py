"""Sparse connection, given as a matrix or drawn at random."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from snnc.compiler.ir import graph as ir
from snnc.compiler.ir.arrays.randomness import Stream
from snnc.compiler.ir.arrays.sparse import Pattern, row_pointer
from snnc.compiler.ir.graph import Array, Operation, Shape
from snnc.frontends.dsl.connections.base import Branch, Connection, Seed, Weights, check_weights, generator, realise, realise_bias
from snnc.frontends.dsl.connections.delays import Delays, by_delay, drawn_delays
from snnc.frontends.dsl.errors import ConnectionShapeError, SparseMatrixError
from snnc.frontends.dsl.initialisers import FanIn, Fans, Initialiser

MAX_DRAWN_TARGETS: Final = 1 << 22
"""Maximum number of target neurons whose connections are drawn at random; drawing takes some microseconds per neuron."""


@dataclass(frozen=True, eq=False, repr=False)
class SparseConnection(Connection):
    """Some neurons of the source feed each neuron of the target. Give exactly one of `matrix`, `density` and `fan_in`.

    Parameters
    ----------
    matrix
        The weights [outputs, inputs]. Connections are the stored entries of a :mod:`scipy.sparse` matrix or array, or the nonzero
        values of any other array.
    density
        Probability of each connection, drawn independently.
    fan_in
        Number of sources of each target neuron, drawn without replacement.
    outputs
        Number of target neurons, as in :class:`snnc.Dense`; not required with `matrix`.
    bias
        As in :class:`snnc.Dense`; no bias by default.
    init
        Initialiser of the weights, by default torch's as in :class:`snnc.Dense`; with `matrix`, it replaces the matrix's values. Its
        fan-in and fan-out are mean numbers of connections.
    seed, learnable
        As in :class:`snnc.Dense`.
    delays
        As in :class:`snnc.Dense`; a scipy.sparse matrix of delays must have an entry wherever the weights have one.

    Examples
    --------
    >>> import scipy.sparse
    >>> import snnc
    >>> net = snnc.Network(seed=1)
    >>> spikes, hidden = net.input(4), net.population(2, snnc.LIF(), name="hidden")
    >>> net.connect(spikes, hidden, snnc.Sparse(scipy.sparse.csr_array([[0.5, 0, 0, 1.0], [0, 0, 0.2, 0]])))
    >>> net.connect(hidden, hidden, snnc.Sparse(fan_in=1, init=snnc.LogNormal()), delay=1)
    >>> net.graph().operation("input_to_hidden").indices
    array([0, 3, 2], dtype=int32)
    """

    matrix: Any = None
    density: float | None = None
    fan_in: int | None = None
    outputs: int | None = None
    bias: bool | npt.ArrayLike | Initialiser = False
    init: Weights | None = None
    seed: int | None = None
    learnable: bool = True
    delays: Delays = None

    def shape_after(self, source: Shape, where: str) -> Shape | None:
        """Return the number of outputs, if given."""
        if self.matrix is not None:
            return _shape_of(self.matrix, where)[:1]
        return None if self.outputs is None else (self.outputs,)

    def build(self, source: Shape, target: Shape | None, seed: Seed, where: str) -> tuple[Branch, ...]:
        """Return one branch with all weights or, if `delays` is given, one branch for each delay, with the weights of that delay."""
        rng, shape = generator(self.seed, seed, where), self._shape(source, target, where)
        values, pattern = self._entries(shape, rng, where)
        count, (outputs, inputs) = len(pattern.indices), shape
        if not count:
            raise SparseMatrixError(f"{where}: Sparse has no connection among {outputs} x {inputs}; give one or more, or leave it out.")
        fans = Fans(count / outputs, count / inputs)
        init = self.init if self.init is not None else FanIn() if values is None else values
        weight = realise(init, (count,), fans, rng, f"the weight of {where}")
        bias = realise_bias(self.bias, init, outputs, fans, rng, where)
        flat: tuple[Operation, ...] = (ir.Flatten(),) if len(source) > 1 else ()
        delays = drawn_delays(self.delays, shape, pattern, rng, where)
        if delays is None:
            return (Branch((*flat, ir.Sparse(weight, pattern.indices, pattern.indptr, shape, bias, self.learnable))),)
        parts = by_delay(weight, pattern.rows, pattern.indices, delays, shape, bias, self.learnable)
        return tuple(Branch((*flat, part), delay) for delay, part in parts)

    def _shape(self, source: Shape, target: Shape | None, where: str) -> tuple[int, int]:
        """Return (outputs, inputs)."""
        if sum(option is not None for option in (self.matrix, self.density, self.fan_in)) != 1:
            raise SparseMatrixError(f"{where}: Sparse needs exactly one of a matrix, density=0.1 and fan_in=40.")
        inputs, declared = math.prod(source), self.shape_after(source, where)
        result = declared if target is None else target
        if result is None:
            raise ConnectionShapeError(f"{where}: Sparse does not define its number of outputs; write outputs=n.")
        matrix_shape = None if self.matrix is None else _shape_of(self.matrix, where)
        if len(result) != 1 or declared not in (None, result) or matrix_shape not in (None, (*result, inputs)):
            text = f"Sparse(outputs={self.outputs})" if matrix_shape is None else f"a matrix of shape {matrix_shape}"
            raise ConnectionShapeError(
                f"{where}: {text} is between a source of shape {source} and a target of shape {result}; it needs (outputs, inputs) = "
                f"({math.prod(result)}, {inputs}), and a target with one axis."
            )
        return result[0], inputs

    def _entries(self, shape: tuple[int, int], rng: Stream, where: str) -> tuple[Array | None, Pattern]:
        """Return the weights of `matrix`, None without a matrix, and the positions of all weights."""
        if self.matrix is not None:
            return _read_matrix(self.matrix, shape, where)
        outputs, inputs = shape
        if self.fan_in is not None:
            fan_in = _checked_fan_in(self.fan_in, inputs, where)
            _check_effort(outputs, fan_in, where)
            counts = np.full(outputs, fan_in)
        else:
            density = _checked_density(self.density, where)
            _check_effort(outputs, density * inputs, where)
            counts = rng.binomial(inputs, density, outputs)
        sources = [rng.distinct(inputs, count) for count in counts]
        return None, Pattern(np.concatenate(sources).astype(np.int32), row_pointer(counts), shape)


def _shape_of(matrix: Any, where: str) -> Shape:
    try:
        return tuple(int(n) for n in np.shape(matrix))
    except (TypeError, ValueError) as error:
        raise _not_a_matrix(matrix, error, where) from None


def _not_a_matrix(matrix: Any, error: Exception, where: str) -> SparseMatrixError:
    return SparseMatrixError(f"{where}: {type(matrix).__name__} is not a matrix of numbers ({error}); give a scipy.sparse array.")


def _read_matrix(matrix: Any, shape: tuple[int, int], where: str) -> tuple[Array, Pattern]:
    from scipy.sparse import csr_array

    try:
        rows = csr_array(matrix, dtype=np.float32, copy=True)
    except (TypeError, ValueError) as error:
        raise _not_a_matrix(matrix, error, where) from None
    rows.sum_duplicates()
    return rows.data, Pattern(rows.indices.astype(np.int32), rows.indptr.astype(np.int32), shape)


def _checked_fan_in(value: int, inputs: int, where: str) -> int:
    try:
        count = operator.index(value)
    except TypeError:
        count = 0
    if not 1 <= count <= inputs:
        raise SparseMatrixError(f"{where}: fan_in is {value!r}, but the source has {inputs} neurons; give 1 to {inputs}.")
    return count


def _check_effort(outputs: int, fan_in: float, where: str) -> None:
    """Refuse more target neurons than :data:`MAX_DRAWN_TARGETS`, and more weights than fit in memory, before drawing any."""
    if outputs > MAX_DRAWN_TARGETS:
        raise SparseMatrixError(
            f"{where}: connections can be drawn at random for at most {MAX_DRAWN_TARGETS:,} neurons, but the target has {outputs:,}; "
            "give a matrix, or split the population."
        )
    check_weights((max(1, round(outputs * fan_in)),), f"the weight of {where}")


def _checked_density(value: object, where: str) -> float:
    if not isinstance(value, int | float | np.number) or not 0 < float(value) <= 1:
        raise SparseMatrixError(f"{where}: the density is {value!r}; give a probability above 0 and at most 1.")
    return float(value)
