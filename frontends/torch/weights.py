"""Write trained weights back into the module from which the network was imported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from snnc.compiler.ir.graph import Array, Graph
from snnc.compiler.ir.step_operations import SparseProduct
from snnc.compiler.ir.step_program import StepProgram
from snnc.frontends.onnx.writer.errors import AmbiguousWeightError, TorchModuleError, UnmatchedWeightError
from snnc.frontends.torch.batchnorm import unfolded
from snnc.frontends.torch.exporting import require_torch
from snnc.frontends.torch.forms import Form, blocks, forms, tensor_values
from snnc.frontends.torch.naming import arrays
from snnc.frontends.torch.training import written_statistics

Place = TypeVar("Place", str, Form)
"""Name of a tensor of the module, or a form for some of its rows."""


def to_torch(trained: Any, module: Any, *, graph: Graph | None = None) -> list[str]:
    """Write trained weights into the parameters of the module from which the network was imported.

    A weight of the network belongs to the parameter or buffer of the module that had the weight's value at the import, so the module must
    not have changed since. If a batch normalisation was folded into a weight, the trained weight is written to the layer,
    and the trained bias to the normalisation's bias; running statistics and ``gamma`` do not change. The gates of an LSTM cell, which are
    separate layers in the network, are written to the rows of the cell's weights. Nothing is written unless everything fits.

    Parameters
    ----------
    trained
        A session, or the result of its ``state_dict()``.
    module
        The module that was passed to :func:`from_torch`.
    graph
        For a plain state dictionary: the graph returned by :func:`from_torch`, whose values identify the parameters. Without it, only
        shapes and names identify them.

    Returns
    -------
    list
        Names of the written tensors of the module.

    Raises
    ------
    UnmatchedWeightError
        A weight changed by training has no counterpart in the module, or its counterpart cannot store it.
    AmbiguousWeightError
        A weight changed by training has several counterparts in the module, or several different weights have the same counterpart.
    TorchModuleError
        `module` is not a module, or `trained` contains no weights of snnc.
    """
    torch = require_torch()
    if not isinstance(module, torch.nn.Module):
        raise TorchModuleError(f"{type(module).__name__} is not a torch.nn.Module; give the module itself.")
    values, originals = _weights(trained, graph)
    new_values = _new_values(module, values, originals)
    state = module.state_dict(keep_vars=True)
    with torch.no_grad():
        for name, value in new_values.items():
            state[name].copy_(torch.as_tensor(value))
    return list(new_values)


def _weights(trained: Any, graph: Graph | None) -> tuple[dict[str, Array], dict[str, Array]]:
    """Return the trained values by label, and the values before training, if known."""
    if isinstance(trained, Mapping):
        values = {str(name): np.asarray(value) for name, value in trained.items()}
        if graph is None:
            return values, {}
        from snnc.compiler.lowering.lower import lower

        program = lower(graph)
    elif hasattr(trained, "state_dict") and hasattr(trained, "program"):
        values, program = trained.state_dict(), trained.program
    else:
        raise TorchModuleError(f"{type(trained).__name__} contains no weights of snnc; give a session or its state_dict().")
    return _with_zeros(program, values), _with_zeros(program, {p.label: p.value for p in program.parameters.values()})


def _with_zeros(program: StepProgram, values: Mapping[str, Array]) -> dict[str, Array]:
    """Return the values with sparse weights expanded to dense arrays, as in the module."""
    dense_values = dict(values)
    for operation in program.forward:
        if isinstance(operation, SparseProduct):
            label, pattern = program.parameters[operation.weight].label, operation.pattern
            if label in dense_values:
                dense = np.zeros(pattern.shape, dense_values[label].dtype)
                dense[pattern.rows, pattern.indices] = dense_values[label]
                dense_values[label] = dense
    return dense_values


def _new_values(module: Any, values: Mapping[str, Array], originals: Mapping[str, Array]) -> dict[str, Array]:
    """Return the new value of each changed tensor of the module, by name."""
    tensors = arrays(module)
    changed = {k: v for k, v in values.items() if k not in originals or not np.array_equal(originals[k], v)}
    # New values with the labels of their weights: of whole tensors, by name, and of blocks of rows of a tensor.
    whole_tensors: dict[str, tuple[str, Array]] = {}
    blocks_of_rows: dict[Form, tuple[str, Array]] = {}
    done: set[str] = set()
    for label in sorted(changed, key=lambda label: label.endswith(".bias")):  # biases last
        if label in done:
            continue
        value, node = changed[label], label.rpartition(".")[0]
        statistics = written_statistics(label, value, tensors)
        if statistics is not None:
            whole_tensors[statistics[0]] = (label, statistics[1])
            continue
        with_norm = unfolded(module, values, originals, node) if not _weight_fits(tensors, values, originals, node) else None
        if with_norm is not None:
            whole_tensors |= {name: (label, part.astype(tensors[name].dtype)) for name, part in with_norm.items()}
            done |= {f"{node}.weight", f"{node}.bias"}
            continue
        form = _form(label, value, originals, tensors)
        new = tensor_values(value, form, tensors[form.tensor])
        if new is None:
            raise UnmatchedWeightError(
                f"training changed {label!r} to {np.asarray(value).reshape(-1)[0]:g}, but the module computes it as a sigmoid of "
                f"{form.tensor!r}, which is between 0 and 1. Train with a smaller learning rate."
            )
        if form.rows is None:
            _assign(whole_tensors, form.tensor, label, new)
        else:
            _assign(blocks_of_rows, replace(form, transposed=False), label, new)
    written = {name: new for name, (_, new) in whole_tensors.items()}
    for form, (_, new) in blocks_of_rows.items():
        written[form.tensor] = written.get(form.tensor, tensors[form.tensor]).copy()
        written[form.tensor][slice(*(form.rows or (None, None)))] = new
    return {name: written[name] for name in tensors if name in written}


def _assign(values: dict[Place, tuple[str, Array]], place: Place, label: str, new: Array) -> None:
    """Store the new value of a tensor or of its rows; a different value of another weight raises an AmbiguousWeightError."""
    if place in values and not np.array_equal(values[place][1], new):
        tensor = place.tensor if isinstance(place, Form) else place
        raise AmbiguousWeightError(
            f"{values[place][0]!r} and {label!r} of the network both come from {tensor!r}, a shared weight, but training "
            "made them differ; the module has a single place for them."
        )
    values[place] = (label, new)


def _form(label: str, value: Array, originals: Mapping[str, Array], tensors: Mapping[str, Array]) -> Form:
    """Return the tensor, or the block of its rows, from which a weight was imported."""
    original, (node, _, last) = originals.get(label), label.rpartition(".")
    fitting = [f for name, tensor in tensors.items() for f in forms(name, tensor, value=value, original=original)]
    fitting = [f for f in fitting if f.owner == node and f.parameter == last] or fitting
    if not fitting:
        fitting = [f for name, tensor in tensors.items() for f in blocks(name, tensor, value=value, original=original)]
        fitting = _biases_of_weight(fitting, node, originals, tensors) or fitting
    return _chosen(label, value, fitting, original is not None)


def _biases_of_weight(fitting: list[Form], node: str, originals: Mapping[str, Array], tensors: Mapping[str, Array]) -> list[Form]:
    """Return the biases in `fitting` whose weight in the module equals that of `node`, if that weight is known and several biases fit."""
    weight = originals.get(f"{node}.weight")
    if weight is None or len(fitting) < 2:
        return fitting
    gates = {(f.tensor, f.rows) for name, tensor in tensors.items() for f in blocks(name, tensor, value=weight, original=weight)}
    return [f for f in fitting if (f.tensor.replace("bias", "weight"), f.rows) in gates]


def _weight_fits(tensors: Mapping[str, Array], values: Mapping[str, Array], originals: Mapping[str, Array], node: str) -> bool:
    """Return whether the weight of `node` equals a tensor of the module; True for nodes without a weight."""
    label = f"{node}.weight"
    if label not in values or label not in originals:
        return True
    return any(
        find(name, tensor, value=values[label], original=originals[label]) for find in (forms, blocks) for name, tensor in tensors.items()
    )


def _chosen(label: str, value: Array, fitting: list[Form], by_value: bool) -> Form:
    """Return the form in `fitting` that belongs to the weight, preferably by its name; none or several of them raise an error."""
    node = label.rpartition(".")[0]
    for candidates in ([f for f in fitting if f.tensor in (label, node)], [f for f in fitting if f.owner == node]):
        if len(candidates) == 1:
            return candidates[0]
    if len(fitting) == 1:
        return fitting[0]
    how = "the imported value" if by_value else "the shape"
    if not fitting:
        raise UnmatchedWeightError(
            f"no tensor of the module has {how} of {label!r} {list(value.shape)}; give the module as it was at the import "
            "(snnc folds scales into weights; such weights cannot be written back)."
        )
    names = ", ".join(repr(f.tensor) if f.rows is None else f"rows {f.rows[0]} to {f.rows[1] - 1} of {f.tensor!r}" for f in fitting)
    advice = "initialise them differently before the import" if by_value else "give the session, or graph=, so that values identify them"
    raise AmbiguousWeightError(f"{label!r} {list(value.shape)} could be {names}, which all have {how} of this weight; {advice}.")
