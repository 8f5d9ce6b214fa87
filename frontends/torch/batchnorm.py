"""Recognise batch normalisation that an export folded into the weights before it, and undo the folding for trained weights.

After ``eval()`` a normalisation is ``y = g*x + h`` for each channel, with ``g = gamma / sqrt(var + eps)`` and ``h = beta - g*mean``. The
network contains ``g*W`` and ``g*b + h``. A trained weight is divided by ``g`` and written to the layer. A trained bias is written to
``beta``, or to the layer's bias if the normalisation has no ``beta``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from snnc.compiler.ir.graph import Array


@dataclass(frozen=True, eq=False)
class Normalisation:
    """A batch normalisation layer as gain and shift per channel; `affine` if it has a ``beta``."""

    name: str
    gain: Array
    shift: Array
    affine: bool


def normalisations(module: Any) -> list[Normalisation]:
    """Return the batch normalisations of `module` that have running statistics."""
    layers = []
    for name, part in module.named_modules():
        mean, variance = (getattr(part, f"running_{what}", None) for what in ("mean", "var"))
        if mean is None or variance is None:
            continue
        weight, bias = getattr(part, "weight", None), getattr(part, "bias", None)
        ones = np.ones(len(mean))
        gamma = ones if weight is None else _array(weight)
        gain = gamma / np.sqrt(_array(variance) + part.eps)
        beta = 0 * ones if bias is None else _array(bias)
        layers.append(Normalisation(name, gain, beta - gain * _array(mean), bias is not None))
    return layers


def folds(module: Any) -> dict[str, Array]:
    """Return the folded weight by name, for each weight whose number of rows is the number of channels of exactly one normalisation."""
    candidates: dict[str, list[Array]] = {}
    for norm in normalisations(module):
        for name, tensor in weights(module).items():
            if len(tensor) == len(norm.gain):
                candidates.setdefault(name, []).append(folded(tensor, norm))
    return {name: folded_weights[0] for name, folded_weights in candidates.items() if len(folded_weights) == 1}


def weights(module: Any) -> dict[str, Array]:
    """Return the weights of `module` into which a normalisation can be folded."""
    return {n: _array(t) for n, t in module.named_parameters() if n.rpartition(".")[2] == "weight" and t.ndim > 1}


def folded(tensor: Array, norm: Normalisation) -> Array:
    """Return ``g*W``, the weight with the normalisation folded into it."""
    return np.asarray(tensor * norm.gain.reshape(-1, *(1,) * (tensor.ndim - 1)))


def unfolded(module: Any, values: Mapping[str, Array], originals: Mapping[str, Array], node: str) -> dict[str, Array] | None:
    """Return new values for tensors of `module`, by name, that reproduce the trained weights of the layer `node` of the network.

    `module` must not have changed since its import. `values` and `originals` are trained values, and values before training, by label. The
    result is None if not exactly one layer with a normalisation fits, or if the module has no place for the trained bias.
    """
    weight, before = values.get(f"{node}.weight"), originals.get(f"{node}.weight")
    if weight is None or before is None:
        return None
    state = module.state_dict()
    fitting = [
        (name, norm)
        for norm in normalisations(module)
        for name, tensor in weights(module).items()
        if len(tensor) == len(norm.gain) and nearly_equal(folded(tensor, norm), before) and norm.gain.all()
    ]
    if len(fitting) != 1:
        return None
    name, norm = fitting[0]
    bias_name = f"{name.removesuffix('weight')}bias"
    layer_bias = state.get(bias_name)
    tensors = {name: weight / norm.gain.reshape(-1, *(1,) * (weight.ndim - 1))}
    bias = values.get(f"{node}.bias")
    if bias is not None:
        folded_bias = 0.0 if layer_bias is None else _array(layer_bias) * norm.gain
        if norm.affine:
            tensors[f"{norm.name}.bias"] = _array(state[f"{norm.name}.bias"]) + bias - folded_bias - norm.shift
        elif layer_bias is not None:
            tensors[bias_name] = (bias - norm.shift) / norm.gain
        else:
            return None
    return tensors


def nearly_equal(one: Array, other: Array) -> bool:
    """Return whether two weights are equal apart from rounding: an exporter folds in float32, this module in float64."""
    return one.shape == other.shape and bool(np.allclose(one, other, rtol=1e-4, atol=1e-6))


def _array(tensor: Any) -> Array:
    return np.asarray(tensor.detach().cpu().numpy(), np.float64)
