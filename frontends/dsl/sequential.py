"""``snnc.Sequential``: build a chain of layers in one call."""

from __future__ import annotations

from dataclasses import dataclass

from snnc.compiler.ir.graph import Kind, Readout
from snnc.compiler.neurons.neuron import NeuronModel
from snnc.frontends.dsl.connections import Connection, Conv, Dense, OneToOne, Sparse
from snnc.frontends.dsl.errors import SequenceError
from snnc.frontends.dsl.network import Network, ShapeLike
from snnc.frontends.dsl.nodes import NetworkNode


@dataclass(frozen=True, eq=False)
class Recurrent:
    """A layer of neurons whose outputs also reach the layer itself through `connection`, `delay` steps later."""

    model: NeuronModel
    connection: Connection = Dense()
    delay: int = 1


def sequential(
    shape: ShapeLike,
    *layers: Connection | NeuronModel | Recurrent,
    name: str = "network",
    kind: Kind = "spikes",
    readout: Readout = "all",
    port: str = "",
    seed: int = 0,
) -> Network:
    """Return a network that is a chain of connections and neurons.

    Parameters
    ----------
    shape
        Shape of the input.
    layers
        Connections such as ``Dense(n)``, ``Conv(channels, kernel)`` and ``MaxPool(2)``, which define their result shapes, and neuron
        models or ``Recurrent(model)``. There must be neurons between two of Dense, Sparse and Conv, and at the end;
        other connections, such as pooling, may be anywhere but at the end.
    name, kind, seed
        Name and seed of the network, and kind of the input; see :class:`~snnc.frontends.dsl.network.Network`.
    readout, port
        Readout of the output, and port of the last layer that it reads; by default the first.

    Raises
    ------
    SequenceError
        The layers are in an invalid order, one is not a layer, or one does not define its number of outputs.

    Examples
    --------
    >>> import snnc
    >>> net = snnc.Sequential(700, snnc.Dense(256), snnc.LIF(beta=0.9), snnc.Dense(20), snnc.LI(beta=0.9))
    >>> net = snnc.Sequential((1, 28, 28), snnc.Conv(16, 5), snnc.LIF(beta=0.9), snnc.MaxPool(2), snnc.Dense(10), snnc.LI(beta=0.9))
    """
    net = Network(name, seed)
    node = net.input(shape, kind)
    pending: list[Connection] = []
    for position, layer in enumerate(layers, 1):
        match layer:
            case Connection():
                weighted = Dense | Sparse | Conv
                if isinstance(layer, weighted) and any(isinstance(part, weighted) for part in pending):
                    raise SequenceError(
                        f"layer {position}: there are no neurons between this connection with weights and the one before; put neurons "
                        "between them."
                    )
                pending.append(layer)
            case NeuronModel():
                node, pending = _layer(net, node, pending, layer, position), []
            case Recurrent(model, connection, delay):
                node, pending = _layer(net, node, pending, model, position), []
                net.connect(node, node, connection, delay=delay)
            case _:
                raise SequenceError(
                    f"layer {position} is {layer!r}; a layer is a connection such as Dense(n) or Conv(channels, kernel), a neuron model or "
                    "Recurrent(model)."
                )
    if pending or not layers:
        raise SequenceError("the last layer must be neurons, for example snnc.LI(beta=0.9).")
    net.output(node, port, readout)
    return net


def _layer(net: Network, source: NetworkNode, pending: list[Connection], model: NeuronModel, position: int) -> NetworkNode:
    chain = pending or [OneToOne()]
    for part in chain:
        if isinstance(part, Dense | Sparse) and part.outputs is None and getattr(part, "matrix", None) is None:
            name, first = part.public_name, position - len(pending) + chain.index(part)
            advice = "Dense(n)" if name == "Dense" else "Sparse(outputs=n, ...)"
            raise SequenceError(f"layer {first}: {name} does not define its number of outputs; write {advice}.")
    node = net.population(net.shape_after(source, chain), model)
    net.connect(source, node, chain)
    return node
