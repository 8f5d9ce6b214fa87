"""Dense connection: a weight between each neuron of the source and each neuron of the target."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from snnc.compiler.ir import graph as ir
from snnc.compiler.ir.graph import Operation, Shape
from snnc.frontends.dsl.connections.base import Branch, Connection, Seed, Weights, generator, realise, realise_bias
from snnc.frontends.dsl.connections.delays import Delays, by_delay, drawn_delays
from snnc.frontends.dsl.errors import ConnectionShapeError
from snnc.frontends.dsl.initialisers import FanIn, Fans, Initialiser


@dataclass(frozen=True, eq=False, repr=False)
class DenseConnection(Connection):
    """Every neuron of the source feeds every neuron of the target: ``current = weight @ x + bias``.

    Parameters
    ----------
    outputs
        Number of outputs, required if another connection follows, and in ``Network.shape_after``. Before a population, None stands for the
        size of the population, and a number must equal it.
    bias
        True for a bias, False for none, or the bias as values or initialiser. With True, the initialiser of the weights draws the bias. If
        it cannot draw one, or the weights are an array, the bias is drawn as in torch's layers
        (:class:`~snnc.frontends.dsl.initialisers.FanIn`).
    init
        An initialiser (default: torch's, uniform in ±1/sqrt(inputs)), or the weights themselves, ``[outputs, inputs]``.
    seed
        Seed of this connection; None derives one from the network's seed and the connection's number.
    learnable
        Whether training changes weight and bias.
    delays
        Delay of each weight in steps, ``[outputs, inputs]``, or ``snnc.UniformDelay(1, 20)``, in addition to the delay of the connection;
        None for no delays.

    Examples
    --------
    >>> import snnc
    >>> net = snnc.Network()
    >>> net.connect(net.input(3), net.population(2, snnc.LIF()), snnc.Dense(delays=[[1, 1, 2], [1, 2, 2]]), name="late")
    >>> [(edge.target, edge.delay) for edge in net.graph().edges if edge.delay]
    [('late_1', 1), ('late_2', 2)]
    """

    outputs: int | None = None
    bias: bool | npt.ArrayLike | Initialiser = True
    init: Weights = FanIn()
    seed: int | None = None
    learnable: bool = True
    delays: Delays = None

    def shape_after(self, source: Shape, where: str) -> Shape | None:
        """Return the number of outputs, if given."""
        return None if self.outputs is None else (self.outputs,)

    def build(self, source: Shape, target: Shape | None, seed: Seed, where: str) -> tuple[Branch, ...]:
        """Return one branch with all weights or, if the weights have different delays, one sparse branch for each delay."""
        inputs, outputs = math.prod(source), self._outputs(source, target, where)
        rng, fans = generator(self.seed, seed, where), Fans(inputs, outputs)
        weight = realise(self.init, (outputs, inputs), fans, rng, f"the weight of {where}")
        bias = realise_bias(self.bias, self.init, outputs, fans, rng, where)
        flat: tuple[Operation, ...] = (ir.Flatten(),) if len(source) > 1 else ()
        delays = drawn_delays(self.delays, (outputs, inputs), None, rng, where)
        if delays is None or (delays == delays.flat[0]).all():
            return (Branch((*flat, ir.Linear(weight, bias, self.learnable)), 0 if delays is None else int(delays.flat[0])),)
        rows = np.repeat(np.arange(outputs, dtype=np.int32), inputs)
        columns = np.tile(np.arange(inputs, dtype=np.int32), outputs)
        parts = by_delay(weight.reshape(-1), rows, columns, delays.reshape(-1), weight.shape, bias, self.learnable)
        return tuple(Branch((*flat, part), delay) for delay, part in parts)

    def _outputs(self, source: Shape, target: Shape | None, where: str) -> int:
        if target is None and self.outputs is None:
            raise ConnectionShapeError(f"{where}: Dense() does not define its number of outputs; write Dense(n).")
        if target is not None and len(target) != 1:
            raise ConnectionShapeError(
                f"{where}: Dense needs a target with one axis, but the target has shape {target} and the source {source}; use the shape "
                f"({math.prod(target)},)."
            )
        outputs = self.outputs if target is None else math.prod(target)
        if outputs is None or self.outputs not in (None, outputs):
            raise ConnectionShapeError(f"{where}: Dense({self.outputs}) has {self.outputs} outputs, but the target has {outputs} neurons.")
        return outputs
