"""What can stand between two nodes of a :class:`~snnc.frontends.dsl.Network`, and how it becomes operations of the graph."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from snnc.compiler import graph as ir
from snnc.compiler.graph import Array, Shape
from snnc.frontends.errors import ConnectionShapeError, InitialiserError
from snnc.frontends.initialisers import FanIn, Initialiser

Weights: TypeAlias = "npt.ArrayLike | Initialiser"


@dataclass(frozen=True, eq=False)
class Dense:
    """Every neuron of the source feeds every neuron of the target: ``current = weight @ x + bias``.

    Parameters
    ----------
    outputs
        Neurons of the target; needed in :func:`~snnc.frontends.sequential.Sequential` only, checked elsewhere.
    bias
        Whether to add a learnable bias, or its values.
    init
        An initialiser (default: torch's, uniform in ±1/sqrt(inputs)), or the weights themselves, ``[outputs, inputs]``.
    seed
        Seed of this connection; None derives one from the network's seed and the connection's position.
    learnable
        Whether training changes weight and bias.
    """

    outputs: int | None = None
    bias: bool | npt.ArrayLike = True
    init: Weights = FanIn()
    seed: int | None = None
    learnable: bool = True

    def build(self, source: Shape, target: Shape, seed: Sequence[int], where: str) -> ir.Linear:
        """Return the operation for a source of shape `source` and a target of shape `target`.

        Raises
        ------
        ConnectionShapeError
            Sizes do not fit.
        InitialiserError
            Weights are not finite numbers.
        """
        inputs, outputs = math.prod(source), math.prod(target)
        if len(target) != 1:
            raise ConnectionShapeError(f"{where}: Dense needs a target with one axis, and this one has shape {target}; use ({outputs},).")
        if self.outputs not in (None, outputs):
            raise ConnectionShapeError(f"{where}: Dense({self.outputs}) has {self.outputs} outputs, and the target has {outputs} neurons.")
        rng = np.random.default_rng(list(seed) if self.seed is None else self.seed)
        weight = realise(self.init, (outputs, inputs), inputs, rng, f"the weight of {where}")
        bias = None
        if isinstance(self.bias, bool | np.bool_):
            if self.bias:
                init = self.init if _draws(self.init) else FanIn()
                bias = realise(init, (outputs,), inputs, rng, f"the bias of {where}")
        else:
            bias = realise(self.bias, (outputs,), inputs, rng, f"the bias of {where}")
        return ir.Linear(weight, bias, self.learnable)


@dataclass(frozen=True, eq=False)
class OneToOne:
    """Neuron k of the source feeds neuron k of the target.

    Parameters
    ----------
    weight
        A number for all, an array of the source's shape, an initialiser, or None for 1.
    learnable
        Whether training changes the weight.
    seed
        As in :class:`Dense`.
    """

    weight: Weights | None = None
    learnable: bool = False
    seed: int | None = None

    def build(self, source: Shape, target: Shape, seed: Sequence[int], where: str) -> ir.OneToOne:
        """Return the operation; see :meth:`Dense.build`."""
        if source != target:
            raise ConnectionShapeError(f"{where}: OneToOne needs equal shapes, and these are {source} and {target}; Dense() joins any two.")
        if self.weight is None:
            return ir.OneToOne(None, False)
        rng = np.random.default_rng(list(seed) if self.seed is None else self.seed)
        scalar = not _draws(self.weight) and np.ndim(self.weight) == 0  # type: ignore[arg-type]
        return ir.OneToOne(realise(self.weight, () if scalar else source, 1, rng, f"the weight of {where}"), self.learnable)


Connection: TypeAlias = Dense | OneToOne


def realise(init: Weights, shape: Shape, fan_in: int, rng: np.random.Generator, what: str) -> Array:
    """Draw from an initialiser, or check given values.

    Raises
    ------
    ConnectionShapeError
        Given values have another shape.
    InitialiserError
        They are no finite numbers.
    """
    if isinstance(init, type | str) or callable(init):
        raise InitialiserError(f"{what}: {init!r} is neither an array nor an initialiser such as snnc.Normal(0.1).")
    try:
        drawn = init.draw(shape, fan_in, rng) if _draws(init) else init  # type: ignore[union-attr]
        values = np.array(drawn, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise InitialiserError(f"{what} cannot be made: {error}.") from None
    if values.shape != shape:
        raise ConnectionShapeError(f"{what} has shape {values.shape}; this connection needs {shape}.")
    if not np.isfinite(values).all():
        raise InitialiserError(f"{what} holds NaN or infinity at {int((~np.isfinite(values)).sum())} of {values.size} places.")
    return values


def _draws(init: object) -> bool:
    return hasattr(init, "draw")
