"""Weights with masked gradients: entries whose gradient a hook multiplies by 0 are excluded from training.

Norse prevents self-excitation in this way: the diagonal of recurrent weights is 0, and a hook masks its gradient.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from snnc.compiler.ir.graph import Array, Graph, Linear, Sparse
from snnc.compiler.passes.edit import replace_operation
from snnc.frontends.onnx.writer.errors import TorchHookError
from snnc.frontends.torch.exporting import require_torch
from snnc.frontends.torch.forms import forms


def freeze_masked_entries(graph: Graph, module: Any) -> None:
    """Exclude from training the weight entries that hooks of `module` mask, in place.

    Raises a TorchHookError if a hook changes a gradient in any other way, a masked entry is not 0, or the parameter is not the weight of
    a layer.
    """
    for name, parameter in module.named_parameters():
        if not parameter.requires_grad or not parameter._backward_hooks:
            continue
        mask = _mask(name, parameter)
        if not mask.all():
            _apply(graph, name, parameter.detach().cpu().numpy(), mask)


def _mask(name: str, parameter: Any) -> Array:
    """Return a mask of the entries of a parameter whose gradient its hooks do not change."""
    torch = require_torch()
    generator = torch.Generator().manual_seed(0)
    gradient = torch.rand(parameter.shape, generator=generator, dtype=parameter.dtype) + 1
    found = gradient.clone()
    for hook in parameter._backward_hooks.values():
        changed = hook(found)
        found = found if changed is None else changed
    mask = np.asarray((found != 0).cpu().numpy())
    if found.shape != gradient.shape or not torch.equal(found, gradient * torch.from_numpy(mask)):
        raise TorchHookError(
            f"a hook changes the gradient of {name!r} other than by setting entries to 0, which snnc cannot reproduce. Remove the hook "
            "before the import."
        )
    return mask


def _apply(graph: Graph, name: str, value: Array, mask: Array) -> None:
    """Replace the layer with the weight `value` by a sparse layer that has only the entries in `mask`."""
    for node, layer in list(graph.of_type(Linear)):
        found = forms(name, value, layer.weight, layer.weight)
        if not found:
            continue
        trainable = mask.T if found[0].transposed else mask
        if layer.weight[~trainable].any():
            break
        rows, columns = np.nonzero(trainable)
        counts = np.bincount(rows, minlength=len(trainable))
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        weights = layer.weight[rows, columns]
        shape = (layer.weight.shape[0], layer.weight.shape[1])
        sparse = Sparse(weights, columns.astype(np.int32), indptr, shape, layer.bias, layer.learnable)
        replace_operation(graph, node, sparse)
        graph.assumptions.append(
            f"A hook masks {np.count_nonzero(~mask):,} of the {mask.size:,} gradients of {name!r}; these weights stay 0, and the "
            f"others are the sparse connection {node!r}."
        )
        return
    raise TorchHookError(
        f"a hook masks part of the gradient of {name!r}, but its masked entries are not 0, or it is not the weight of a layer; snnc can "
        "only exclude weights of 0 from training. Set these entries to 0, or remove the hook before the import."
    )
