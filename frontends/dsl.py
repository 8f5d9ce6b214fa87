"""Networks written in Python: nodes, connections and outputs, checked as they are written."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import networkx as nx
import numpy as np
import numpy.typing as npt

from snnc.compiler.errors import CycleWithoutDelayError, InvalidValueError
from snnc.compiler.graph import Array, Flatten, Graph, Input, Kind, Output, Population, Readout, Shape, source_ports
from snnc.compiler.neuron import NeuronModel
from snnc.compiler.surrogate import Surrogate
from snnc.frontends.connections import Connection, Dense, OneToOne
from snnc.frontends.errors import ConnectionKindError, EmptyNetworkError, ForeignNodeError, NetworkShapeError, PopulationOptionError

ShapeLike: TypeAlias = "int | Iterable[int]"


@dataclass(frozen=True)
class Node:
    """A node of a network, as :meth:`Network.input` and :meth:`Network.population` return it."""

    name: str
    shape: Shape
    network: Network

    def __repr__(self) -> str:
        return f"Node({self.name!r}, {self.shape})"


class Network:
    """A spiking network in Python.

    Parameters
    ----------
    name
        For reports.
    seed
        Seed of all initial weights.

    Examples
    --------
    >>> import snnc
    >>> net = snnc.Network("digits")
    >>> spikes = net.input(64)
    >>> hidden = net.population(100, snnc.LIF(beta=0.9), name="hidden")
    >>> net.connect(spikes, hidden, snnc.Dense())
    >>> net.connect(hidden, hidden, snnc.Dense(bias=False), delay=1)
    >>> net.graph().names
    ('input', 'hidden', 'input_to_hidden', 'hidden_to_hidden', 'output')
    """

    def __init__(self, name: str = "network", seed: int = 0) -> None:
        self.name = name
        self.seed = seed
        self._graph = Graph(name)
        self._connections = 0

    def input(self, shape: ShapeLike, kind: Kind = "spikes", name: str | None = None) -> Node:
        """Add an input.

        Parameters
        ----------
        shape
            Values of one sample at one step.
        kind
            ``"spikes"`` (0 or 1, moved as events) or ``"values"``.
        name
            Name of its array in the data; by default ``"input"``, ``"input2"`` and so on.
        """
        if kind not in ("spikes", "values"):
            raise InvalidValueError(f"the input has kind {kind!r}; an input is 'spikes' or 'values'.")
        size = _shape(shape, "the input")
        return self._node(self._graph.add(name or self._free("input"), Input(size, kind)), size)

    def population(
        self,
        shape: ShapeLike,
        model: NeuronModel,
        name: str | None = None,
        *,
        learnable: Iterable[str] = (),
        parameters: Mapping[str, npt.ArrayLike] | None = None,
        initial: Mapping[str, npt.ArrayLike] | None = None,
        surrogate: Surrogate | None = None,
    ) -> Node:
        """Add neurons of one model.

        Parameters
        ----------
        shape
            Neurons of one sample.
        model
            ``snnc.LIF(...)`` and its like, or ``snnc.Neuron(...)``.
        name
            By default the model's name in small letters, with a number when it is taken.
        learnable
            Parameters that training changes.
        parameters
            Values other than the model's own: a number, or an array with one a neuron.
        initial
            Initial states other than the model's own, likewise.
        surrogate
            Derivative of the spike; None takes the one given to :func:`snnc.compile`.

        Raises
        ------
        PopulationOptionError
            A name is not in the model, or an array has another shape.
        """
        what = f"population {name!r}" if name else "the population"
        size = _shape(shape, what)
        if not isinstance(model, NeuronModel):
            raise PopulationOptionError(f"{what}: {model!r} is no neuron model; give snnc.LIF(beta=0.9) or snnc.Neuron(...).")
        label = name or self._free(_plain(model.name))
        learn = frozenset([learnable] if isinstance(learnable, str) else learnable)
        _check_names({*learn, *(parameters or {})}, model.parameters, f"{what}: {model.name} has no parameter")
        _check_names(set(initial or {}), model.states, f"{what}: {model.name} has no state")
        population = Population(model, size, _values(parameters, size, what), learn, _values(initial, size, what), surrogate)
        return self._node(self._graph.add(label, population), size)

    def connect(
        self,
        source: Node,
        target: Node,
        connection: Connection | None = None,
        *,
        delay: int = 0,
        source_port: str = "",
        target_port: str = "",
        name: str | None = None,
    ) -> None:
        """Connect two nodes.

        Parameters
        ----------
        source, target
            Nodes of this network; `target` is a population.
        connection
            ``snnc.Dense()`` (default) or ``snnc.OneToOne()``.
        delay
            Steps between the source's value and its use; a cycle needs 1 or more somewhere.
        source_port, target_port
            Which output or state of the source, which input of the target; by default the first.
        name
            Under which weights are saved; by default ``"<source>_to_<target>"``.

        Raises
        ------
        ConnectionShapeError
            Sizes do not fit.
        CycleWithoutDelayError
            The connection closes a cycle without delay.
        """
        self._own(source)
        self._own(target)
        kind = Dense() if connection is None else connection
        where = f"the connection {source.name!r} -> {target.name!r}"
        if not isinstance(kind, Dense | OneToOne):
            raise ConnectionKindError(f"{where} is {kind!r}; give snnc.Dense() or snnc.OneToOne().")
        steps = _whole(delay, f"{where}: the delay", 0)
        self._check_port(source, source_port)
        self._check_cycle(source.name, target.name, steps)
        operation = kind.build(source.shape, target.shape, (self.seed, self._connections), where)
        trial = self._graph.copy()
        start, port = source.name, source_port
        label = name or self._free(f"{source.name}_to_{target.name}")
        if isinstance(kind, Dense) and len(source.shape) > 1:
            flat = trial.add(self._free(f"{label}_flat"), Flatten())
            trial.connect(start, flat, source_port=port, delay=steps)
            start, port, steps = flat, "", 0
        trial.add(label, operation)
        trial.connect(start, label, source_port=port, delay=steps)
        trial.connect(label, target.name, target_port=target_port)
        self._graph, self._connections = trial, self._connections + 1

    def output(self, node: Node, port: str = "", readout: Readout = "all", name: str | None = None) -> str:
        """Name a result.

        Parameters
        ----------
        node
            A population.
        port
            Which output or state of it (``"v"``); by default the first.
        readout
            ``"all"`` steps, or their ``"last"``, ``"sum"``, ``"mean"`` or ``"max"``.
        name
            Name of the array in the results; by default ``"output"``, ``"output2"`` and so on.

        Returns
        -------
        str
            The name.
        """
        self._own(node)
        self._check_port(node, port)
        if readout not in ("all", "last", "sum", "mean", "max"):
            raise InvalidValueError(f"the readout {readout!r} of {node.name!r} is not known; choose all, last, sum, mean or max.")
        label = self._graph.add(name or self._free("output"), Output(readout))
        self._graph.connect(node.name, label, source_port=port)
        return label

    def graph(self) -> Graph:
        """Return the network as a graph; without named outputs, populations that nobody else reads become outputs.

        Raises
        ------
        EmptyNetworkError
            There is no input, no population, or nothing to put out.
        """
        graph = self._graph.copy()
        for kind, word in ((Input, "input"), (Population, "population")):
            if not any(graph.of_type(kind)):
                raise EmptyNetworkError(f"the network {self.name!r} has no {word}; add one with net.{word}(...).")
        if not any(graph.of_type(Output)):
            ends = [name for name, _ in graph.of_type(Population) if not _readers(graph, name)]
            if not ends:
                raise EmptyNetworkError(f"every population of {self.name!r} feeds another, so no output is evident; call net.output(...).")
            for name in ends:
                label = "output" if len(ends) == 1 else f"{name}_output"
                graph.add(label if label not in graph.names else f"{label}_", Output())
                graph.connect(name, graph.names[-1])
        return graph

    def _node(self, name: str, shape: Shape) -> Node:
        return Node(name, shape, self)

    def _own(self, node: Node) -> None:
        if not isinstance(node, Node) or node.network is not self:
            raise ForeignNodeError(f"{node!r} is not a node of the network {self.name!r}; give what its input() or population() returned.")

    def _free(self, base: str) -> str:
        name, count = base, 1
        while name in self._graph.names:
            count += 1
            name = f"{base}{count}"
        return name

    def _check_port(self, node: Node, port: str) -> None:
        ports = source_ports(self._graph.operation(node.name))
        if port and port not in ports:
            raise PopulationOptionError(f"{node.name!r} has no output or state {port!r}; it has {', '.join(ports)}.")

    def _check_cycle(self, source: str, target: str, delay: int) -> None:
        if delay:
            return
        now: nx.DiGraph[str] = nx.DiGraph()
        now.add_edges_from((e.source, e.target) for e in self._graph.edges if e.delay == 0)
        if source == target or (source in now and target in now and nx.has_path(now, target, source)):
            raise CycleWithoutDelayError(
                f"the connection {source!r} -> {target!r} closes a cycle without delay, so no order of evaluation exists; give it delay=1."
            )


def _readers(graph: Graph, name: str) -> set[str]:
    """Populations other than `name` that `name` feeds."""
    found, open_ = set(), [e.target for e in graph.outgoing(name)]
    while open_:
        node = open_.pop()
        if isinstance(graph.operation(node), Population):
            found.add(node)
        else:
            open_ += [e.target for e in graph.outgoing(node)]
    return found - {name}


def _shape(shape: ShapeLike, what: str) -> Shape:
    sizes = [shape] if isinstance(shape, int | np.integer) else shape
    try:
        found = tuple(operator.index(n) for n in sizes)
    except TypeError:
        found = ()
    if not found or min(found) < 1 or any(isinstance(n, bool) for n in sizes):
        raise NetworkShapeError(f"{what} has shape {shape!r}; a shape is a positive integer or several.")
    return found


def _whole(value: int, what: str, least: int) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if number < least:
        raise InvalidValueError(f"{what} is {value!r}; it is a whole number of {least} or more.")
    return number


def _values(given: Mapping[str, npt.ArrayLike] | None, shape: Shape, what: str) -> dict[str, Array]:
    found: dict[str, Array] = {}
    for name, value in (given or {}).items():
        try:
            array = np.array(value, dtype=np.float32)
        except (TypeError, ValueError):
            raise PopulationOptionError(f"{what}: {name} is {value!r}, which is no number or array.") from None
        if array.shape not in ((), shape):
            raise PopulationOptionError(f"{what}: {name} has shape {array.shape}; give one number or an array of shape {shape}.")
        if not np.isfinite(array).all():
            raise PopulationOptionError(f"{what}: {name} holds NaN or infinity.")
        found[name] = array
    return found


def _check_names(wanted: set[str], known: Iterable[str], what: str) -> None:
    missing = sorted(wanted - set(known))
    if missing:
        raise PopulationOptionError(f"{what} {', '.join(missing)}; it has {', '.join(known) or 'none'}.")


def _plain(name: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in name.lower()) or "population"
