"""Networks written in Python: nodes, groups, connections and outputs, checked as they are added."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

import networkx as nx
import numpy as np
import numpy.typing as npt

from snnc.compiler.errors import CycleWithoutDelayError, DuplicateNodeError, InvalidValueError, UnknownNodeError
from snnc.compiler.ir.arrays.sizes import check_size
from snnc.compiler.ir.graph import Array, Graph, Input, Kind, Output, Population, Readout, Shape, source_ports
from snnc.compiler.ir.graph_text import graph_html, graph_text
from snnc.compiler.neurons.library import JoinAnd, JoinIAnd, Relay
from snnc.compiler.neurons.neuron import NeuronModel
from snnc.compiler.neurons.surrogates.surrogate import Surrogate
from snnc.compiler.passes.edit import fresh_name
from snnc.frontends.dsl.connections import Connection, Dense, OneToOne
from snnc.frontends.dsl.connections.base import check_target
from snnc.frontends.dsl.errors import ConnectionKindError, EmptyNetworkError, ForeignNodeError, NetworkShapeError, PopulationOptionError
from snnc.frontends.dsl.nodes import NetworkNode, NodeGroup, grouped
from snnc.frontends.dsl.wiring import Wiring, build_chain, part_text

ShapeLike: TypeAlias = "int | Iterable[int]"
Join: TypeAlias = Literal["add", "and", "iand"]
_JOINS: Final[Mapping[str, Callable[[], NeuronModel]]] = {"add": Relay, "and": JoinAnd, "iand": JoinIAnd}


class Network:
    """A spiking network built in Python.

    Parameters
    ----------
    name
        Name in reports.
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
        self._connection_count = 0  # gives every connection its own random numbers

    def input(self, shape: ShapeLike, kind: Kind = "spikes", name: str | None = None) -> NetworkNode:
        """Add an input.

        Parameters
        ----------
        shape
            Shape of one sample at one step.
        kind
            ``"spikes"`` (0 or 1, moved as events) or ``"values"``.
        name
            Name of its array in the data; by default ``"input"``, ``"input2"`` and so on.
        """
        if kind not in ("spikes", "values"):
            raise InvalidValueError(f"the input has kind {kind!r}; it must be 'spikes' or 'values'.")
        size = _shape(shape, "the input")
        return NetworkNode(self._graph.add(name or self._unused_name("input"), Input(size, kind)), size, self)

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
    ) -> NetworkNode:
        """Add a population: neurons of one model.

        Parameters
        ----------
        shape
            Shape of the population, without samples and steps.
        model
            A model such as ``snnc.LIF(...)``, or ``snnc.Neuron(...)``.
        name
            Name of the population; by default the model's name in lower case, with a number if it is taken.
        learnable
            Parameters that training changes.
        parameters
            Values that differ from the model's own: a number, or an array with one value per neuron.
        initial
            Initial states that differ from the model's own: a number, or an array with one value per neuron. If a delayed connection
            reads a state, it reads these values until the delayed ones arrive.
        surrogate
            Surrogate derivative of the spike; None for the one given to :func:`snnc.compile`.

        Raises
        ------
        PopulationOptionError
            The model has no such parameter or state, or an array has a different shape.
        """
        what = f"population {name!r}" if name else "the population"
        size = _shape(shape, what)
        if not isinstance(model, NeuronModel):
            raise PopulationOptionError(f"{what}: {model!r} is not a neuron model; give snnc.LIF(beta=0.9) or snnc.Neuron(...).")
        label = name or self._unused_name("".join(c if c.isalnum() else "_" for c in model.name.lower()) or "population")
        learn = frozenset([learnable] if isinstance(learnable, str) else learnable)
        _check_names({*learn, *(parameters or {})}, model.parameters, f"{what}: {model.name} has no parameter")
        _check_names(set(initial or {}), model.states, f"{what}: {model.name} has no state")
        population = Population(model, size, _values(parameters, size, what), learn, _values(initial, size, what), surrogate)
        return NetworkNode(self._graph.add(label, population), size, self)

    def group(self, *nodes: NetworkNode, name: str | None = None) -> NodeGroup:
        """Combine nodes into one that can be a source, a target or an output.

        As a source, a group concatenates its nodes' values along the first axis; as a target, it passes each node its part of the
        values. Parameters and states still belong to the nodes.

        Parameters
        ----------
        nodes
            Inputs, populations, parts of these (``hidden[:80]``) or groups; their shapes must agree except for the first axis.
        name
            Name in messages and in names of connections; by default the nodes' names.

        Raises
        ------
        GroupError
            The shapes of the nodes do not agree.

        Examples
        --------
        >>> import snnc
        >>> net = snnc.Network()
        >>> spikes = net.input(10)
        >>> excitatory = net.population(80, snnc.LIF(beta=0.9), name="excitatory")
        >>> inhibitory = net.population(20, snnc.LIF(beta=0.8), name="inhibitory")
        >>> both = net.group(excitatory, inhibitory, name="cortex")
        >>> net.connect(spikes, both, snnc.Dense())
        >>> net.connect(both, excitatory[:40], snnc.Sparse(density=0.1), delay=1)
        >>> both.shape
        (100,)
        """
        for node in nodes:
            self._check_member(node)
        return grouped(self, nodes, name)

    def shape_after(self, source: NetworkNode, connection: Connection | Sequence[Connection]) -> Shape:
        """Return the shape of the result of `connection` for `source`; a population that reads it must have this shape.

        Parameters
        ----------
        source
            A node of this network.
        connection
            A connection, or several in sequence; each must define the shape of its result (``Dense(100)`` does, ``Dense()`` does not).

        Raises
        ------
        SnncError
            The connections do not fit `source` or each other.

        Examples
        --------
        >>> import snnc
        >>> net = snnc.Network()
        >>> image = net.input((1, 28, 28))
        >>> layer = [snnc.Conv(16, 5), snnc.MaxPool(2)]
        >>> hidden = net.population(net.shape_after(image, layer), snnc.LIF(beta=0.9))
        >>> net.connect(image, hidden, layer)
        >>> hidden.shape
        (16, 12, 12)
        """
        self._check_member(source)
        where = f"the connection after {source.name!r}"
        chain, shape = _chain(connection, where), source.shape
        for number, part in enumerate(chain):
            shape = check_target(part, shape, None, part_text(where, chain, number))
        return shape

    def connect(
        self,
        source: NetworkNode,
        target: NetworkNode,
        connection: Connection | Sequence[Connection] | None = None,
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
            Inputs, populations, parts of these (``hidden[:80]``) or groups of this network; an input cannot be a `target`.
        connection
            ``snnc.Dense()`` (default), ``Sparse``, ``OneToOne``, ``Conv``, ``MaxPool``, ``AvgPool``, ``SumPool``, ``BatchNorm``,
            ``Flatten``, or a list of these, applied in order.
        delay
            Steps between the source's value and its use; every cycle needs a delay of at least 1 in total.
        source_port, target_port
            Output or state of the source, and input of the target; by default the first.
        name
            Name of the stored weights; by default ``"<source>_to_<target>"``. For a list of connections, the kind of each is appended
            (``"input_to_hidden_conv"``). If the weights of a connection have different delays (``Dense(delays=...)``), those of
            each delay are stored under a name with a number, shortest delay first.

        Raises
        ------
        SnncError
            Shapes, kernels or strides do not fit, an array cannot be used as weights, or the connection closes a cycle without delay; each
            fault has its own subclass. The network is then unchanged.
        """
        self._check_member(source)
        self._check_member(target)
        where = f"the connection {source.name!r} -> {target.name!r}"
        chain = _chain(Dense() if connection is None else connection, where)
        try:
            steps = operator.index(delay)
        except TypeError:
            steps = -1
        if steps < 0:
            raise InvalidValueError(f"{where}: the delay is {delay!r}; it must be a whole number of 0 or more.")
        self._check_port(source, source_port)
        self._check_target(target, target_port, where)
        stages = build_chain(chain, source.shape, target.shape, (self.seed, self._connection_count), where)
        self._check_cycle(source, target, steps + sum(stage.least_delay for stage in stages))
        if name is not None and name in self._graph.names:
            raise DuplicateNodeError(f"{where} is called {name!r}, like another node of the network; names must differ.")
        label = name or self._unused_name(f"{source.label}_to_{target.label}")
        Wiring(self._graph, label).connect(stages, (source, source_port), (target, target_port), steps)
        self._connection_count += 1

    def connect_ports(
        self,
        source: NetworkNode,
        target: NetworkNode,
        connection: Connection | Sequence[Connection] | None = None,
        *,
        delay: int = 0,
        source_port: str = "",
    ) -> None:
        """Connect a node to every input port of another by separate connections, for example to the gates of an LSTM cell.

        Parameters
        ----------
        source, target, connection, delay, source_port
            As in :meth:`connect`; `target` is a population. Connections are called ``"<source>_to_<target>_<port>"``.

        Raises
        ------
        SnncError
            As in :meth:`connect`.

        Examples
        --------
        >>> import snnc
        >>> net = snnc.Network()
        >>> frames = net.input((1, 8, 8), "values")
        >>> cells = net.population((4, 8, 8), snnc.SLSTM(), name="cells")
        >>> net.connect_ports(frames, cells, snnc.Conv(4, 3, padding=1))
        >>> net.connect_ports(cells, cells, snnc.Conv(4, 3, padding=1, bias=False), delay=1, source_port="mem")
        """
        self._check_member(target)
        operation = self._graph.operation(target.name) if target.name in self._graph.names else None
        ports = operation.model.inputs if isinstance(operation, Population) else ("",)
        for port in ports:
            name = self._unused_name(f"{source.label}_to_{target.label}{'_' if port else ''}{port}")
            self.connect(source, target, connection, delay=delay, source_port=source_port, target_port=port, name=name)

    def join(self, block: NetworkNode, shortcut: NetworkNode, how: Join = "add", name: str | None = None) -> NetworkNode:
        """Join the spikes of a residual block and its shortcut, spike-element-wise (SEW; Fang et al. 2021, arXiv:2102.04159).

        Parameters
        ----------
        block, shortcut
            The last population of the block, and the node that bypasses it; their shapes must be equal.
        how
            ``"add"``: the sum, 0 to 2; ``"and"``: spikes of both; ``"iand"``: spikes of the shortcut where the block has none.
        name
            Name of the population that computes the result; by default ``"join"``, with a number if it is taken.

        Raises
        ------
        InvalidValueError
            `how` is unknown.
        NetworkShapeError
            The shapes differ.

        Examples
        --------
        >>> import snnc
        >>> net = snnc.Network()
        >>> spikes = net.input(8)
        >>> block = net.population(8, snnc.LIF(), name="block")
        >>> net.connect(spikes, block)
        >>> net.join(block, spikes, "iand").shape
        (8,)
        """
        for node in (block, shortcut):
            self._check_member(node)
        if how not in _JOINS:
            raise InvalidValueError(f"how is {how!r}; it must be one of {', '.join(_JOINS)}.")
        if block.shape != shortcut.shape:
            raise NetworkShapeError(
                f"{block.name!r} of shape {block.shape} cannot join {shortcut.name!r} of shape {shortcut.shape}; add a layer that gives "
                "the shortcut the shape of the block."
            )
        model = _JOINS[how]()
        node = self.population(block.shape, model, name or self._unused_name("join"))
        self.connect(block, node, OneToOne(), target_port=model.inputs[0])
        self.connect(shortcut, node, OneToOne(), target_port=model.inputs[-1])
        return node

    def output(self, node: NetworkNode, port: str = "", readout: Readout = "all", name: str | None = None) -> str:
        """Add an output that records the values of a node under a name.

        Parameters
        ----------
        node
            A population, a part of one (``hidden[:10]``), or a group.
        port
            Output or state of the node, such as ``"v"``; by default its first output.
        readout
            ``"all"`` for the values of all steps, or ``"last"``, ``"sum"``, ``"mean"`` or ``"max"`` for a reduction of them over time.
        name
            Name of the array in the results; by default ``"output"``, ``"output2"`` and so on.

        Returns
        -------
        str
            The name of the output.
        """
        self._check_member(node)
        self._check_port(node, port)
        if readout not in ("all", "last", "sum", "mean", "max"):
            raise InvalidValueError(f"the readout {readout!r} of {node.name!r} is unknown; choose all, last, sum, mean or max.")
        label = self._graph.add(name or self._unused_name("output"), Output(readout))
        tap = Wiring(self._graph, label).fetch(node, port)
        self._graph.connect(tap.name, label, source_port=tap.port)
        return label

    def graph(self) -> Graph:
        """Return the network as a graph.

        In a network without outputs, every population that feeds no other population becomes an output.

        Raises
        ------
        EmptyNetworkError
            The network has no input, no population, or no possible output.
        """
        graph = self._graph.copy()
        for kind, word in ((Input, "input"), (Population, "population")):
            if not any(graph.of_type(kind)):
                raise EmptyNetworkError(f"the network {self.name!r} has no {word}; add one with net.{word}(...).")
        if not any(graph.of_type(Output)):
            ends = [name for name, _ in graph.of_type(Population) if not _readers(graph, name)]
            if not ends:
                raise EmptyNetworkError(
                    f"every population of {self.name!r} feeds another, so snnc cannot choose an output; call net.output(...)."
                )
            for name in ends:
                label = "output" if len(ends) == 1 else f"{name}_output"
                output = graph.add(label if label not in graph.names else f"{label}_", Output())
                graph.connect(name, output)
        return graph

    def __repr__(self) -> str:
        return graph_text(self._graph, "Network")

    def _repr_html_(self) -> str:
        return graph_html(self._graph, "Network")

    def _check_member(self, node: NetworkNode) -> None:
        if not isinstance(node, NetworkNode) or node.network is not self:
            raise ForeignNodeError(f"{node!r} is not a node of the network {self.name!r}; give what its input() or population() returned.")

    def _unused_name(self, base: str) -> str:
        return fresh_name(self._graph, base)

    def _check_port(self, node: NetworkNode, port: str) -> None:
        for leaf in node.leaves:
            ports = source_ports(self._graph.operation(leaf.name))
            if port and port not in ports:
                raise PopulationOptionError(f"{leaf.name!r} has no output or state {port!r}; it has {', '.join(ports)}.")

    def _check_target(self, node: NetworkNode, port: str, where: str) -> None:
        for leaf in node.leaves:
            operation = self._graph.operation(leaf.name)
            if not isinstance(operation, Population):
                raise UnknownNodeError(f"{where}: {leaf.name!r} is an input of the network, which cannot be a target.")
            if port and port not in operation.model.inputs:
                raise UnknownNodeError(f"{where}: {leaf.name!r} has no input port {port!r}; it has {', '.join(operation.model.inputs)}.")

    def _check_cycle(self, source: NetworkNode, target: NetworkNode, delay: int) -> None:
        if delay:
            return
        edges = self._graph.nx.edges
        immediate = nx.subgraph_view(self._graph.nx, filter_edge=lambda *edge: edges[edge]["edge"].delay == 0)
        starts = {leaf.name for leaf in source.leaves}
        for end in dict.fromkeys(leaf.name for leaf in target.leaves):
            for start in sorted(starts & (nx.descendants(immediate, end) | {end})):
                raise CycleWithoutDelayError(
                    f"the connection {source.name!r} -> {target.name!r} closes a cycle without delay over {end!r} -> {start!r}, so no "
                    "order of evaluation exists; give it delay=1."
                )


def _readers(graph: Graph, name: str) -> set[str]:
    populations, open_ = set(), [e.target for e in graph.outgoing(name)]
    while open_:
        node = open_.pop()
        if isinstance(graph.operation(node), Population):
            populations.add(node)
        else:
            open_ += [e.target for e in graph.outgoing(node)]
    return populations - {name}


def _shape(shape: ShapeLike, what: str) -> Shape:
    sizes = [shape] if isinstance(shape, int | np.integer) else shape
    try:
        checked = tuple(operator.index(n) for n in sizes)
    except TypeError:
        checked = ()
    if not checked or min(checked) < 1 or any(isinstance(n, bool) for n in sizes):
        raise NetworkShapeError(f"{what} has shape {shape!r}; a shape is one positive integer or several.")
    check_size(checked, what)
    return checked


def _chain(connection: Connection | Sequence[Connection], where: str) -> list[Connection]:
    chain: list[Any] = list(connection) if isinstance(connection, list | tuple) else [connection]
    for part in chain:
        if not isinstance(part, Connection):
            raise ConnectionKindError(f"{where} is {part!r}; give snnc.Dense(), another connection, or a list of connections.")
    if not chain:
        raise ConnectionKindError(f"{where} is an empty list; give one connection or more, or snnc.OneToOne().")
    return chain


def _values(values: Mapping[str, npt.ArrayLike] | None, shape: Shape, what: str) -> dict[str, Array]:
    arrays: dict[str, Array] = {}
    for name, value in (values or {}).items():
        try:
            array = np.array(value, dtype=np.float32)
        except (TypeError, ValueError):
            raise PopulationOptionError(f"{what}: {name} is {value!r}; give a number or an array.") from None
        if array.shape not in ((), shape):
            raise PopulationOptionError(f"{what}: {name} has shape {array.shape}; give one number or an array of shape {shape}.")
        if not np.isfinite(array).all():
            raise PopulationOptionError(f"{what}: {name} contains NaN or infinity.")
        arrays[name] = array
    return arrays


def _check_names(names: set[str], known: Iterable[str], what: str) -> None:
    missing = sorted(names - set(known))
    if missing:
        raise PopulationOptionError(f"{what} {', '.join(missing)}; it has {', '.join(known) or 'none'}.")
