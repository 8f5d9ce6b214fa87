"""Notices, shown when training starts, about differences from training the imported PyTorch module itself."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from snnc.compiler.ir.graph import WEIGHTED, Graph, Population
from snnc.frontends.torch.batchnorm import normalisations
from snnc.frontends.torch.forms import FUNCTIONS, blocks, forms
from snnc.frontends.torch.training import is_dropout

_MAX_NAMES: Final = 6


def notices(graph: Graph, module: Any, shared: list[str], train: bool) -> Iterator[str]:
    """Yield the notices about a module and the network read from it.

    `shared` are names of parameters of several populations; with `train`, dropout and batch normalisation are layers of the network.
    """
    for name, population in graph.of_type(Population):
        for parameter in sorted(population.learnable):
            function = next((f for f in sorted(FUNCTIONS, key=len, reverse=True) if parameter.startswith(f"{f}_")), None)
            if function is not None:
                inner = parameter.removeprefix(f"{function}_")
                yield (
                    f"SNNC-W272: training changes {parameter!r} of {name!r} itself, not the {inner!r} from which the module computes it: "
                    "the same learning rate results in a different step."
                )
    folded = [] if train else [norm.name for norm in normalisations(module)]
    if folded:
        yield (
            f"SNNC-W273: the batch normalisations {_listed(folded)} are folded into the preceding weights, with their running statistics: "
            "training changes the products, but not the statistics."
        )
    dropped = [name for name, part in module.named_modules() if is_dropout(part)]
    if dropped and not train:
        yield f"SNNC-W274: the dropout of {_listed(dropped)} has no effect in snnc, not even in training."
    missing = _not_learned(graph, module, shared)
    if missing:
        yield f"SNNC-W275: {_listed(missing)} learn in the module, but are constants of the network or not part of it."
    if shared:
        yield (
            f"SNNC-W277: {_listed(shared)} learn in the module, but are constants of the network: several populations share them, "
            "and would train separate copies."
        )


def _not_learned(graph: Graph, module: Any, reported: Collection[str]) -> list[str]:
    """Return the names of parameters that learn in the module but not in the network, without those in `reported`."""
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
        # A learnable parameter of a neuron has the module's name, with a function before it (sigmoid_w) or a number after it.
        of_neuron = any(p == last or p.endswith(f"_{last}") or p.rstrip("0123456789") == last for p in names)
        if not parameter.requires_grad or of_neuron or (value.ndim > 1 and last not in ("threshold", "beta", "alpha")) or folded:
            continue
        if any(find(name, value, value=array, original=array) for find in (forms, blocks) for array in arrays):  # a weight contains it
            continue
        missing.append(name)
    return missing


def unclamped(bounds: Mapping[str, tuple[float, float]], module: Any) -> Iterator[str]:
    """Yield notices on parameters that training may move outside the module's clamps, which the network does not have."""
    values = {name: module.get_parameter(name).detach().cpu().numpy() for name in bounds}
    inside = {name: pair for name, pair in bounds.items() if ((pair[0] < values[name]) & (values[name] < pair[1])).all()}
    for low, high in sorted(set(inside.values())):
        names = [name for name, pair in inside.items() if pair == (low, high)]
        yield (
            f"SNNC-W276: the module clamps {_listed(names)} to the range {low:g} to {high:g}, but the network has no clamp: training may "
            "leave that range, outside of which the module computes other values. Train with a smaller learning rate if it does."
        )


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return ", ".join(map(repr, names[:_MAX_NAMES])) + more
