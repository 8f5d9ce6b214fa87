"""Give layers of the graph the names that they have in the module, and mark learnable parameters; values identify both."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np

from snnc.compiler.errors import SnncError
from snnc.compiler.ir.graph import WEIGHTED, Array, Graph, Input, Output, Population, StateRef
from snnc.compiler.neurons.expression import Assignment, Symbol, substitute
from snnc.compiler.passes.edit import add_edge, replace_operation
from snnc.frontends.torch.batchnorm import folds, nearly_equal
from snnc.frontends.torch.exporting import require_torch
from snnc.frontends.torch.forms import Form, blocks, forms
from snnc.frontends.torch.states import private_copy


def with_module_names(graph: Graph, module: Any, read: Callable[[Any], Graph]) -> Graph:
    """Return `graph`, which was read from `module`, with the names of the module's layers, which the values of their weights identify.

    If values do not identify all parameters, for example because two are equal, `read` reads a copy of the module in which all differ. If
    it cannot, or returns a graph with other nodes or edges, `graph` is returned unchanged.
    """
    tensors = arrays(module)
    ambiguous, identified, folded_weights = _ambiguous_parameters(module), graph, folds(module)
    if ambiguous:
        other = private_copy(module)
        with require_torch().no_grad():
            for number, name in enumerate(ambiguous, start=1):
                other.get_parameter(name).add_(1e-3 * number)  # small, so that the module still exports the same operators
        try:
            identified = read(other)
        except SnncError:
            return graph
        if not _same_structure(graph, identified):
            return graph
        tensors, folded_weights = arrays(other), folds(other)
    return _renamed(_with_parameter_names(graph, identified, tensors), _names(identified, tensors, folded_weights))


def copy_learnable(graph: Graph, module: Any) -> None:
    """Mark, in place, weights and neuron parameters as learnable or constant as in the module, where their values identify them."""
    trained, frozen = _parameter_arrays(module, trained=True), _parameter_arrays(module, trained=False)
    for name, layer in graph.of_type(*WEIGHTED):
        if layer.weight is None:
            continue
        of_frozen, of_trained = (
            any(find(n, t, value=layer.weight, original=layer.weight) for find in (forms, blocks) for n, t in tensors.items())
            for tensors in (frozen, trained)
        )
        if of_frozen and not of_trained:
            replace_operation(graph, name, replace(layer, learnable=False))
    owners = _layers(module)
    for name, population in graph.of_type(Population):
        candidates = {n: t for n, t in trained.items() if n.rpartition(".")[0] == name}
        if not candidates and name not in owners:  # a layer of the module with tensors has no parameters of other layers
            candidates = trained
        learnable = {p for p, value in _parameters(population).items() for n, t in candidates.items() if _fits(n, t, p, value)}
        replace_operation(graph, name, replace(population, learnable=population.learnable | learnable))


def freeze_shared(graph: Graph, module: Any) -> list[str]:
    """Freeze, in place, the neuron parameters that several populations share; return their names in the module.

    Otherwise, each population would learn its own copy from its own part of the gradient.
    """
    trained, owners = _parameter_arrays(module, trained=True), _layers(module)
    holders: dict[tuple[str, str], set[str]] = {}  # tensors of the module that may be a parameter, by node and parameter
    for node, population in graph.of_type(Population):
        for parameter, value in _parameters(population).items():
            fitting = {n for n, t in trained.items() if parameter in population.learnable and _fits(n, t, parameter, value)}
            holders[node, parameter] = {n for n in fitting if n.rpartition(".")[0] == node} or (set() if node in owners else fitting)
    shared = []
    for name in trained:
        places = [place for place, names in holders.items() if name in names]
        if len(places) <= len(set.union(set(), *(holders[place] for place in places))):
            continue  # each population may have a parameter of its own
        shared.append(name)
        for node, parameter in places:
            operation = graph.operation(node)
            assert isinstance(operation, Population)
            replace_operation(graph, node, replace(operation, learnable=operation.learnable - {parameter}))
    return shared


def arrays(module: Any) -> dict[str, Array]:
    """Return floating-point parameters and buffers by name."""
    state = module.state_dict(keep_vars=True)
    return {name: np.asarray(t.detach().cpu().numpy()) for name, t in state.items() if t.is_floating_point()}


def _parameter_arrays(module: Any, *, trained: bool) -> dict[str, Array]:
    return {name: t.detach().cpu().numpy() for name, t in module.named_parameters() if t.requires_grad == trained}


def _layers(module: Any) -> set[str]:
    return {name.rpartition(".")[0] for name in arrays(module)}


def _parameters(population: Population) -> dict[str, Array]:
    return {p: np.asarray(population.parameters.get(p, default)) for p, default in population.model.parameters.items()}


def _fits(tensor_name: str, tensor: Array, parameter: str, value: Array) -> bool:
    """Return whether the `value` of a neuron's parameter is a tensor with the parameter's name, or a function of SpikingJelly's ``w``."""
    last = tensor_name.rpartition(".")[2]
    # an imported, untrained value: the present value is also the original
    candidates = forms(tensor_name, tensor, value=value, original=value) if last in (parameter, "w") else []
    return any(f.function or last == parameter for f in candidates)


def _with_parameter_names(graph: Graph, identified: Graph, tensors: Mapping[str, Array]) -> Graph:
    """Name parameters that are functions of the module's parameters, such as ``sigmoid_w``.

    `identified` is `graph`, or the same graph read from a copy of the module whose parameters all differ; values in it identify them.
    """
    other = graph.copy()
    for name, population in identified.of_type(Population):
        new_names: dict[str, str] = {}
        for parameter, value in _parameters(population).items():
            names = {f.parameter for n, t in tensors.items() for f in forms(n, t, value=value, original=value) if f.function}
            if len(names) == 1 and not names & {*new_names.values(), *population.model.parameters}:
                new_names[parameter] = names.pop()
        if new_names:
            operation = graph.operation(name)
            assert isinstance(operation, Population)  # _same_structure
            replace_operation(other, name, _with_names(operation, new_names))
    return other


def _with_names(population: Population, new_names: Mapping[str, str]) -> Population:
    """Return the population with new names for its parameters, by old name."""
    model = population.model
    symbols = {old: Symbol(name) for old, name in new_names.items()}
    lines = tuple(Assignment(line.target, substitute(line.value, symbols)) for line in model.equations)
    defaults = {new_names.get(n, n): v for n, v in model.parameters.items()}
    return replace(
        population,
        model=replace(model, parameters=defaults, equations=lines),
        parameters={new_names.get(n, n): v for n, v in population.parameters.items()},
        learnable=frozenset(new_names.get(n, n) for n in population.learnable),
    )


def _ambiguous_parameters(module: Any) -> list[str]:
    """Return the names of parameters that values do not identify: another tensor is equal, or sigmoid(w) equals 1 - sigmoid(w)."""

    def key_of(tensor: Any) -> tuple[tuple[int, ...], bytes]:
        return tuple(n for n in tensor.shape if n != 1), tensor.detach().cpu().numpy().tobytes()

    seen = {key_of(buffer): name for name, buffer in module.named_buffers()}
    names = []
    for name, parameter in module.named_parameters():
        key = key_of(parameter)
        symmetric = name.rpartition(".")[2] == "w" and not parameter.any()  # sigmoid(0) = 1 - sigmoid(0)
        if parameter.requires_grad and (key in seen or symmetric):
            names.append(name)
        seen.setdefault(key, name)
    return names


def _same_structure(one: Graph, other: Graph) -> bool:
    """Return whether two graphs differ only in their numbers."""
    same = one.names == other.names and one.edges == other.edges
    return same and all(type(one.operation(n)) is type(other.operation(n)) for n in one.names)


def _names(graph: Graph, tensors: Mapping[str, Array], folded_weights: Mapping[str, Array]) -> dict[str, str]:
    """Return the module's name for each node that fits exactly one layer, unless the name is ambiguous or taken."""
    module_names: dict[str, str] = {}
    for name, operation in graph.of_type(*WEIGHTED, Population):
        if isinstance(operation, Population):
            fitting = _owners(operation, tensors)
        elif operation.weight is None:
            continue
        else:
            weight = operation.weight
            candidates = [f for n, t in tensors.items() for f in forms(n, t, value=weight, original=weight) if weight.size > 1]
            candidates = candidates or [Form(n) for n, folded in folded_weights.items() if nearly_equal(folded, weight)]
            fitting = {f.tensor.removesuffix(".weight") for f in candidates}
        if len(fitting) == 1:
            module_names[name] = fitting.pop()
    taken = list(module_names.values())
    fixed = {n for n in graph.names if n not in module_names or isinstance(graph.operation(n), Input | Output)}
    return {name: new for name, new in module_names.items() if new and taken.count(new) == 1 and new not in fixed}


def _owners(population: Population, tensors: Mapping[str, Array]) -> set[str]:
    """Return the layers to which `population` may belong: a value of a parameter matches, and no parameter of the same name differs.

    If there is no such layer, return the layer with a matching value, if there is only one.
    """
    fits, differs = set(), set()
    for parameter, value in _parameters(population).items():
        for name, tensor in tensors.items():
            owner, _, last = name.rpartition(".")
            if _fits(name, tensor, parameter, value):
                fits.add(owner)
            elif last == parameter:
                differs.add(owner)
    return fits - differs or (fits if len(fits) == 1 else set())


def _renamed(graph: Graph, names: Mapping[str, str]) -> Graph:
    if not names:
        return graph
    other = graph.copy()
    other.assumptions = [re.sub(r"'([^']*)'", lambda quoted: f"'{names.get(quoted[1], quoted[1])}'", text) for text in graph.assumptions]
    other.state_inputs = {k: StateRef(names.get(ref.node, ref.node), ref.name) for k, ref in graph.state_inputs.items()}
    other.nx = nx.MultiDiGraph()
    for name in graph.names:
        other.add(names.get(name, name), graph.operation(name))
    for edge in graph.edges:
        source, target = names.get(edge.source, edge.source), names.get(edge.target, edge.target)
        add_edge(other, replace(edge, source=source, target=target))
    return other
