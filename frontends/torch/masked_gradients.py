"""Weights with masked gradients: entries whose gradient a hook multiplies by 0 are excluded from training.

Norse prevents self-excitation in this way: the diagonal of recurrent weights is 0, and a hook masks its gradient.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from snnc.compiler.ir.arrays.sparse import row_pointer
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
            _replace_layer(graph, name, parameter.detach().cpu().numpy(), mask)


def _mask(name: str, parameter: Any) -> Array:
    """Return a mask of the entries of a parameter whose gradient its hooks do not change, or raise a TorchHookError."""
    torch = require_torch()
    generator = torch.Generator().manual_seed(0)
    gradient = torch.rand(parameter.shape, generator=generator, dtype=parameter.dtype) + 1
    masked = gradient.clone()
    for hook in parameter._backward_hooks.values():
        changed = hook(masked)
        masked = masked if changed is None else changed
    mask = np.asarray((masked != 0).cpu().numpy())
    if masked.shape != gradient.shape or not torch.equal(masked, gradient * torch.from_numpy(mask)):
        raise TorchHookError(
            f"a hook changes the gradient of {name!r} other than by setting entries to 0, which snnc cannot reproduce. Remove the hook "
            "before the import."
        )
    return mask


def _replace_layer(graph: Graph, name: str, value: Array, mask: Array) -> None:
    """Replace the layer with the weight `value` by a sparse layer that has only the entries in `mask`."""
    for node, layer in list(graph.of_type(Linear)):
        matching = forms(name, value, value=layer.weight, original=layer.weight)
        if not matching:
            continue
        trainable = mask.T if matching[0].transposed else mask
        if layer.weight[~trainable].any():
            break
        columns = np.nonzero(trainable)[1].astype(np.int32)
        indptr, shape = row_pointer(trainable.sum(axis=1)), (layer.weight.shape[0], layer.weight.shape[1])
        replace_operation(graph, node, Sparse(layer.weight[trainable], columns, indptr, shape, layer.bias, layer.learnable))
        graph.assumptions.append(
            f"A hook masks {np.count_nonzero(~mask):,} of the {mask.size:,} gradients of {name!r}; these weights stay 0, and the "
            f"others are the sparse connection {node!r}."
        )
        return
    raise TorchHookError(
        f"a hook masks part of the gradient of {name!r}, but its masked entries are not 0, or it is not the weight of a layer; snnc can "
        "only exclude weights of 0 from training. Set these entries to 0, or remove the hook before the import."
    )
