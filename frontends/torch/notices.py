"""Differences between training in snnc and training the module; the sentences are shown when training starts."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from snnc.compiler.ir.graph import WEIGHTED, Graph, Population
from snnc.frontends.torch.batchnorm import normalisations
from snnc.frontends.torch.forms import FUNCTIONS, blocks, forms

_MOST: Final = 6


def notices(graph: Graph, module: Any, shared: list[str], train: bool) -> list[str]:
    """Return the sentences about a module and the network read from it.

    Several populations have the parameters `shared`; with `train`, dropout and batch normalisation are layers of the network.
    """
    changed = [] if train else [*_normalised(module), *_dropped(module)]
    return [*_functions(graph), *changed, *_constant(graph, module, shared), *_shared(shared)]


def _functions(graph: Graph) -> Iterator[str]:
    for name, population in graph.of_type(Population):
        for parameter in sorted(population.learnable):
            function = next((f for f in sorted(FUNCTIONS, key=len, reverse=True) if parameter.startswith(f"{f}_")), None)
            if function is not None:
                inner = parameter.removeprefix(f"{function}_")
                yield (
                    f"SNNC-W272: training changes {parameter!r} of {name!r} itself, not the {inner!r} that the module computes it from: "
                    "the same learning rate gives another step."
                )


def _normalised(module: Any) -> Iterator[str]:
    found = [norm.name for norm in normalisations(module)]
    if found:
        yield (
            f"SNNC-W273: the batch normalisations {_listed(found)} are folded into the weights before them, with their running statistics: "
            "training changes the products and not the statistics."
        )


def _dropped(module: Any) -> Iterator[str]:
    found = [name for name, part in module.named_modules() if "Dropout" in type(part).__name__ and getattr(part, "p", None)]
    if found:
        yield f"SNNC-W274: the dropout of {_listed(found)} has no effect in snnc, not even in training."


def _constant(graph: Graph, module: Any, reported: Collection[str]) -> Iterator[str]:
    """Name the parameters that learn in the module only."""
    learned = {(name, parameter) for name, population in graph.of_type(Population) for parameter in population.learnable}
    names = {parameter for _, parameter in learned}
    weights = [layer for _, layer in graph.of_type(*WEIGHTED) if layer.weight is not None and layer.learnable]
    arrays = [a for layer in weights for a in (layer.weight, getattr(layer, "bias", None)) if a is not None]
    folded = bool(normalisations(module))
    missing = []
    for name, parameter in module.named_parameters():
        if name in reported:
            continue
        value = parameter.detach().cpu().numpy()
        last = name.rpartition(".")[2]
        of_neuron = any(p == last or p.endswith(f"_{last}") or p.rstrip("0123456789") == last for p in names)
        if not parameter.requires_grad or of_neuron or (value.ndim > 1 and last not in ("threshold", "beta", "alpha")) or folded:
            continue
        if any(find(name, value, array, array) for find in (forms, blocks) for array in arrays):
            continue
        missing.append(name)
    if missing:
        yield f"SNNC-W275: {_listed(missing)} of the module learn there, and are constants of the network or not part of it."


def unclamped(bounds: Mapping[str, tuple[float, float]], module: Any) -> Iterator[str]:
    """Name the parameters that training may move outside the module's clamps, because the network has no clamps."""
    values = {name: module.get_parameter(name).detach().cpu().numpy() for name in bounds}
    inside = {name: pair for name, pair in bounds.items() if ((pair[0] < values[name]) & (values[name] < pair[1])).all()}
    for low, high in sorted(set(inside.values())):
        names = [name for name, pair in inside.items() if pair == (low, high)]
        yield (
            f"SNNC-W276: the module clamps {_listed(names)} to {low:g} to {high:g}, and the network has no clamp: training may leave that "
            "range, outside which the module computes other values. Train with a smaller learning rate if it does."
        )


def _shared(names: list[str]) -> Iterator[str]:
    """Name the parameters that stay constant because several populations share them."""
    if names:
        yield (
            f"SNNC-W277: {_listed(names)} of the module learn there, and are constants of the network: several populations hold them, "
            "and would train separate copies."
        )


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return ", ".join(map(repr, names[:_MOST])) + more
