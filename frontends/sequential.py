"""A chain of layers in one call."""

from __future__ import annotations

from dataclasses import dataclass

from snnc.compiler.graph import Kind, Readout
from snnc.compiler.neuron import NeuronModel
from snnc.frontends.connections import Connection, Dense, OneToOne
from snnc.frontends.dsl import Network, Node, ShapeLike
from snnc.frontends.errors import SequenceError


@dataclass(frozen=True, eq=False)
class Recurrent:
    """A layer of neurons that also feeds itself, one or more steps later."""

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
    """Make a chain of connections and neurons.

    Parameters
    ----------
    shape
        Of the input.
    layers
        ``Dense(n)`` or ``OneToOne()``, each followed by a neuron model or ``Recurrent(model)``.
    name, kind, seed
        As in :class:`~snnc.frontends.dsl.Network`.
    readout, port
        What the output gives of the last layer.

    Examples
    --------
    >>> import snnc
    >>> net = snnc.Sequential(700, snnc.Dense(256), snnc.LIF(beta=0.9), snnc.Dense(20), snnc.LI(beta=0.9))
    """
    net = Network(name, seed)
    node = net.input(shape, kind)
    pending: Connection | None = None
    for position, layer in enumerate(layers, 1):
        match layer:
            case Dense() | OneToOne():
                if pending is not None:
                    raise SequenceError(f"layer {position}: a connection follows a connection; put neurons between them.")
                pending = layer
            case NeuronModel():
                node, pending = _layer(net, node, pending, layer, position), None
            case Recurrent(model, connection, delay):
                node, pending = _layer(net, node, pending, model, position), None
                net.connect(node, node, connection, delay=delay)
            case _:
                raise SequenceError(f"layer {position} is {layer!r}; a layer is Dense(n), OneToOne(), a neuron model or Recurrent(model).")
    if pending is not None or not layers:
        raise SequenceError("the last layer has to be neurons, for example snnc.LI(beta=0.9).")
    net.output(node, port, readout)
    return net


def _layer(net: Network, source: Node, connection: Connection | None, model: NeuronModel, position: int) -> Node:
    link = OneToOne() if connection is None else connection
    if isinstance(link, Dense) and link.outputs is None:
        raise SequenceError(f"layer {position - 1}: Dense() does not say how many neurons follow; write Dense(n).")
    outputs = link.outputs if isinstance(link, Dense) else source.shape
    assert outputs is not None
    node = net.population(outputs, model)
    net.connect(source, node, link)
    return node
