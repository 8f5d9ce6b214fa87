"""Forms in which a network stores tensors of a module: unchanged, transposed, transformed by a function, or as blocks of rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from snnc.compiler.ir.graph import Array

_TOLERANCE: Final = 2e-6
"""Relative error allowed for a sigmoid that PyTorch computed in float32."""


@dataclass(frozen=True)
class Form:
    """A tensor of the module, and how the network stores it."""

    tensor: str  # name of the tensor in the module
    transposed: bool = False  # whether the network stores its transpose
    function: str = ""  # function of the tensor that is stored, one of FUNCTIONS (SpikingJelly's learnable time constants)
    rows: tuple[int, int] | None = None  # range of rows that is stored, such as a gate of an LSTM cell; None: all rows

    @property
    def parameter(self) -> str:
        """Name in the network of the neuron parameter that comes from the tensor, such as ``sigmoid_w``."""
        last = self.tensor.rpartition(".")[2]
        return f"{self.function}_{last}" if self.function else last

    @property
    def owner(self) -> str:
        """Name of the layer that contains the tensor."""
        return self.tensor.rpartition(".")[0]


def _sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x.astype(np.float64))))


def _logit(y: Array) -> Array:
    y = y.astype(np.float64)
    return np.asarray(np.log(y) - np.log1p(-y))


FUNCTIONS: Final[Mapping[str, tuple[Callable[[Array], Array], Callable[[Array], Array]]]] = {
    "sigmoid": (_sigmoid, _logit),
    "one_minus_sigmoid": (lambda x: 1 - _sigmoid(x), lambda y: -_logit(y)),
}
"""Functions that modules apply to neuron parameters, with their inverses."""


def forms(name: str, tensor: Array, *, value: Array, original: Array | None) -> list[Form]:
    """Return the forms in which the network may store the module's tensor `name` as `value`.

    `original` is the network's value before training, which must equal the tensor in a form; None if it is unknown: then the shape must
    fit. Functions are tried only for a tensor called ``w``, as SpikingJelly calls its learnable time constants.
    """
    plain = _plain(name, tensor, value, original)
    if plain is not None:
        return [plain]
    if name.rpartition(".")[2] != "w" or original is None or tensor.size != 1 or original.size != 1:
        return []
    return [
        Form(name, function=function)
        for function, (forward, _) in FUNCTIONS.items()
        if np.isclose(forward(tensor).reshape(-1)[0], original.reshape(-1)[0], rtol=_TOLERANCE, atol=0)
    ]


def blocks(name: str, tensor: Array, *, value: Array, original: Array | None) -> list[Form]:
    """Return the blocks of rows of the tensor `name` that equal `original`, such as LSTM gates; `value` is the trained value."""
    if original is None or original.size < 2 or value.shape != original.shape:
        return []
    equal_blocks = []
    for transposed in (False, True) if original.ndim == 2 else (False,):
        oriented = original.T if transposed else original
        rows = len(oriented)
        if tensor.ndim != oriented.ndim or tensor.shape[1:] != oriented.shape[1:] or len(tensor) == rows or len(tensor) % rows:
            continue
        starts = range(0, len(tensor), rows)
        equal_blocks += [Form(name, transposed, rows=(k, k + rows)) for k in starts if np.array_equal(tensor[k : k + rows], oriented)]
    return equal_blocks


def _plain(name: str, tensor: Array, value: Array, original: Array | None) -> Form | None:
    """Return the form of a tensor that the network stores itself or transposed; None for other tensors."""
    squeezed = np.squeeze(tensor).shape
    before = value if original is None else original
    for transposed in (False, True) if value.ndim == 2 else (False,):
        oriented = before.T if transposed else before
        if original is not None and oriented.ndim == 1 and oriented.size == tensor.size:  # one value per neuron
            oriented = oriented.reshape(squeezed)
        if np.squeeze(oriented).shape != squeezed and value.size != 1:
            continue
        if value.size == 1 and tensor.size != 1 and original is None:
            continue
        if original is None or np.array_equal(np.broadcast_to(np.squeeze(oriented), squeezed), np.squeeze(tensor)):
            return Form(name, transposed)
    return None


def tensor_values(value: Array, form: Form, tensor: Array) -> npt.NDArray[Any] | None:
    """Return the values of the module's tensor, or of the rows in `form`, that the network stores as `value`.

    The result is None if a value is outside the range of the form's function.
    """
    if form.function:
        with np.errstate(all="ignore"):
            value = FUNCTIONS[form.function][1](value)
        if not np.isfinite(value).all():
            return None
    oriented = value.T if form.transposed else value
    tensor = tensor if form.rows is None else tensor[slice(*form.rows)]
    return np.broadcast_to(oriented.reshape(tensor.shape) if value.size == tensor.size else oriented, tensor.shape).astype(tensor.dtype)
