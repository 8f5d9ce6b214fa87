"""``snnc.initialise``: draw new weights for a network."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from snnc.compiler.ir.arrays.randomness import Stream
from snnc.compiler.ir.graph import Array, Graph
from snnc.compiler.lowering.lower import lower
from snnc.driver.loading import as_graph
from snnc.driver.measuring import Data, checked_sequences
from snnc.errors import InitialisationError
from snnc.frontends.dsl.initialisers import Initialiser
from snnc.initialising.fluctuation import FluctuationDriven
from snnc.initialising.incoming import incoming_weights, with_weights
from snnc.initialising.lsuv import LSUV

Method: TypeAlias = FluctuationDriven | LSUV | Initialiser


def initialise(model: Any, method: Method, *, data: Data | Path | str | None = None, seed: int = 0) -> Graph:
    """Return a copy of the network with new weights.

    The learnable weights of the dense, sparse and convolutional connections into populations are drawn anew, and their biases become 0.
    Of several that follow each other without a population between them, only the last one changes. Weights of one-to-one connections,
    scales and neuron parameters do not change.

    Parameters
    ----------
    model
        Any model accepted by :func:`snnc.compile`.
    method
        :class:`~snnc.FluctuationDriven`, :class:`~snnc.LSUV`, or an initialiser of the Python DSL, such as :class:`~snnc.KaimingNormal`.
    data
        Inputs in the layout of the model, or an npz archive of them. LSUV requires them; FluctuationDriven measures the mean and variance
        of the inputs on them.
    seed
        Seed of the random numbers.

    Raises
    ------
    InitialisationError
        The method requires data that are missing, or cannot reach its target with this network.
    DataFileError, UnknownNameError, DataShapeError, DataNotFiniteError, NotBinaryError
        The data do not match the inputs of the model.

    Examples
    --------
    ::

        graph = snnc.initialise(net, snnc.FluctuationDriven(rate=0.02, xi=2))
        session = snnc.compile(graph, loss="ce_count")
    """
    graph, rng = as_graph(model), Stream(seed)
    inputs = {} if data is None else _inputs(graph, Path(data) if isinstance(data, str) else data)
    if isinstance(method, LSUV) and not inputs:
        raise InitialisationError("LSUV scales weights on a batch of data; give one with data=.")
    if isinstance(method, FluctuationDriven | LSUV):
        return method.apply(graph, inputs, rng)
    changed = graph.copy()
    for weights in incoming_weights(graph).values():
        for one in weights:
            with_weights(changed, one.name, method.draw(one.operation.weight.shape, one.fans, rng))
    return changed


def _inputs(graph: Graph, data: Data | Path) -> Mapping[str, Array]:
    program = lower(graph)
    arrays = checked_sequences(graph, program, data)
    return {i.label: arrays[i.id] for i in program.inputs}
