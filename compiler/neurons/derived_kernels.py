"""Cache of kernels, the forward and adjoint code derived from neuron equations.

Deriving a kernel needs SymPy, whose import alone takes half a second: more than all other work before the first training step of a network
whose program is already built. A kernel is stored as text in the language of neuron equations, which is parsed and never executed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Final

from snnc.compiler.errors import CacheFolderError, EquationError, GraphDataError, UnsafeCacheError
from snnc.compiler.files.cache import cache_dir, read_checked, write_checked
from snnc.compiler.neurons.expression import to_text
from snnc.compiler.neurons.kernel import Kernel
from snnc.compiler.neurons.neuron import NeuronModel
from snnc.compiler.neurons.plain_data import decoded_fields, encoded_fields
from snnc.compiler.neurons.surrogates.surrogate import Surrogate

LARGEST: Final = 1 << 20
"""Maximum size of a file in bytes; a typical kernel has a few thousand."""
_DERIVING_MODULES: Final = (
    "adjoint", "binary_values", "derived_kernels", "expression", "forward_kernel", "kernel", "neuron", "plain_data",
    "single_assignment", "stored_values", "symbolic",
)  # fmt: skip
"""Modules whose code determines the derived kernel; a change of them invalidates the cache."""


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
    total = hashlib.sha256(version("sympy").encode())
    for name in _DERIVING_MODULES:
        total.update(Path(__file__).with_name(f"{name}.py").read_bytes())
    return total.hexdigest()


def _read(path: Path) -> Kernel | None:
    try:
        data = read_checked(path, LARGEST)
        return None if data is None else decoded_fields(Kernel, json.loads(data), "the kernel")
    except (FileNotFoundError, ValueError, RecursionError, GraphDataError, EquationError):
        return None


def _write(path: Path, kernel: Kernel) -> None:
    data = encoded_fields(kernel)
    try:
        if decoded_fields(Kernel, data, "the kernel") != kernel:
            return
    except EquationError:
        return
    write_checked(path, json.dumps(data).encode())
