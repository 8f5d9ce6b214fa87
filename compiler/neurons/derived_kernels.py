"""Cache of kernels, the forward and adjoint code derived from neuron equations.

Deriving a kernel needs SymPy, whose import alone takes half a second: more than all other work before the first training step of a network
whose program is already built. A kernel is stored as text in the language of neuron equations, which is parsed and never executed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import fields
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from snnc.compiler.errors import CacheFolderError, EquationError, UnsafeCacheError
from snnc.compiler.files.cache import cache_dir, read_checked, write_checked
from snnc.compiler.neurons.expression import LOWERED, Assignment, parse_assignments, to_text
from snnc.compiler.neurons.kernel import Kernel
from snnc.compiler.neurons.neuron import NeuronModel
from snnc.compiler.neurons.surrogates.surrogate import Surrogate

LARGEST: Final = 1 << 20
"""Maximum size of a file in bytes; a typical kernel has a few thousand."""
_DERIVING_MODULES: Final = (
    "adjoint", "binary_values", "derived_kernels", "expression", "forward_kernel", "kernel", "neuron", "single_assignment",
    "stored_values", "symbolic",
)  # fmt: skip
"""Modules whose code determines the derived kernel; a change of them invalidates the cache."""
_CODE: Final = ("forward", "backward")
_NAMES: Final = tuple(field.name for field in fields(Kernel) if field.name not in (*_CODE, "binary", "labels", "rounded", "halves"))
"""Fields that are lists of names."""


def cached_kernel(
    model: NeuronModel, surrogate: Surrogate, learnable: Sequence[str], ports: Sequence[str], derive: Callable[[], Kernel]
) -> Kernel:
    """Return the cached kernel of a neuron, surrogate, learnable parameters and ports; derive and store it on a miss.

    Files that cannot be read or written, or that do not contain a kernel, are ignored.
    """
    try:
        path = cache_dir() / "kernels" / f"{_key(model, surrogate, learnable, ports)}.json"
        kernel = _read(path)
    except (OSError, CacheFolderError, UnsafeCacheError):
        return derive()
    if kernel is None:
        kernel = derive()
        with suppress(OSError):
            _write(path, kernel)
    return kernel


def _key(model: NeuronModel, surrogate: Surrogate, learnable: Sequence[str], ports: Sequence[str]) -> str:
    names = [model.inputs, model.outputs, tuple(model.states), tuple(model.parameters), tuple(learnable), tuple(ports)]
    text = json.dumps([names, model.text, to_text(surrogate.derivative), _code_hash()])
    return hashlib.sha256(text.encode()).hexdigest()[:32]


@cache
def _code_hash() -> str:
    """Return a hash of SymPy's version and of the modules that derive kernels."""
    total = hashlib.sha256(version("sympy").encode())
    for name in _DERIVING_MODULES:
        total.update(Path(__file__).with_name(f"{name}.py").read_bytes())
    return total.hexdigest()


def _read(path: Path) -> Kernel | None:
    """Return the kernel stored in a file; None without a file that contains one."""
    try:
        data = read_checked(path, LARGEST)
        return None if data is None else from_data(json.loads(data))
    except (FileNotFoundError, ValueError, TypeError, KeyError, AttributeError, RecursionError, EquationError):
        return None


def _write(path: Path, kernel: Kernel) -> None:
    """Write the kernel, completely or not at all, if reading it returns an equal kernel."""
    data = to_data(kernel)
    try:
        if from_data(data) != kernel:
            return
    except EquationError:
        return
    write_checked(path, json.dumps(data).encode())


def to_data(kernel: Kernel) -> dict[str, Any]:
    """Return the kernel as JSON data, without `rounded` and `halves`, which are determined after the derivation."""
    code = {name: "\n".join(map(str, getattr(kernel, name))) for name in _CODE}
    names = {name: list(getattr(kernel, name)) for name in _NAMES}
    return {**names, **code, "binary": sorted(kernel.binary), "labels": dict(kernel.labels)}


def from_data(data: dict[str, Any]) -> Kernel:
    """Return the kernel from the result of :func:`to_data`.

    Invalid code raises an EquationError; data that describe no kernel raise a KeyError or TypeError.
    """
    names: dict[str, Any] = {name: tuple(data[name]) for name in _NAMES}
    forward, backward = (_code(data[name]) for name in _CODE)
    return Kernel(**names, forward=forward, backward=backward, binary=frozenset(data["binary"]), labels=dict(data["labels"]))


def _code(text: str) -> tuple[Assignment, ...]:
    return parse_assignments(text, LOWERED) if text else ()
