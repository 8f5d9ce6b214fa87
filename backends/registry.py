"""The list of all backends. Only this module maps the name of a target to a backend; code that depends on the target calls its backend."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from snnc.backends.backend import Backend
from snnc.backends.cpu.backend import CPU
from snnc.backends.cuda.backend import CUDA
from snnc.backends.poplar.backend import POPLAR
from snnc.backends.poptorch.backend import POPTORCH
from snnc.backends.reference.backend import REFERENCE

AnyBackend: TypeAlias = Backend[Any]
BACKENDS: Final[tuple[AnyBackend, ...]] = (
    REFERENCE,
    CPU,
    CUDA,
    POPTORCH,
    POPLAR,  # last: it accepts any name as that of a machine or of a machine's file
)
DEFAULT: Final = REFERENCE.name
"""The default target."""
PROCESSOR: Final = CPU.name
"""The default target of a PyTorch module."""


def backend_of(target: str) -> AnyBackend:
    """Return the backend for a value of ``--target``.

    Examples
    --------
    >>> [backend_of(target).name for target in ("cpu", "poptorch:bow", "pod4", "mine.toml")]
    ['cpu', 'poptorch', 'machine', 'machine']
    """
    return next(backend for backend in BACKENDS if backend.runs(target))


def named() -> tuple[AnyBackend, ...]:
    """Return the backends whose own names are targets, in alphabetical order."""
    return tuple(sorted((b for b in BACKENDS if b.about), key=lambda b: b.name))


def synonyms() -> dict[str, tuple[str, ...]]:
    """Return the synonyms of every backend in :func:`named` (``gpu`` for ``cuda``), by its name; backends without tiles come first."""
    return {b.name: b.synonyms for b in sorted(named(), key=lambda b: b.has_tiles)}
