"""Targets other than machines, by name, and the kind of any target."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

REFERENCE: Final = "reference"
"""The target that needs no machine: the NumPy backend."""
CPU: Final = "cpu"
"""The target that is the processor at hand: an emitted C++ program."""
CUDA: Final = "cuda"
"""The target that is a GPU: an emitted CUDA program."""
POPTORCH: Final = "poptorch"
"""The target that is a package for PopTorch; ``poptorch:MACHINE`` names the machine that it is placed on."""
MACHINE: Final = "machine"
"""Any target that is described by a file: tiles of one or several chips."""
DESCRIPTIONS: Final = {
    CPU: "this processor: an emitted C++ program, the fastest way to train here; needs a C++ compiler",
    CUDA: "a GPU (sm_75 and newer): an emitted CUDA program; needs nvcc and a device to run, neither to be emitted",
    POPTORCH: "a Python package for PopTorch around a custom operation; poptorch:MACHINE places it on another IPU than a gc200",
    REFERENCE: "the NumPy backend: any network, no compiler needed",
}
"""What the targets are that no file describes, in a line."""
Kind: TypeAlias = Literal["reference", "cpu", "cuda", "poptorch", "machine"]
KINDS: Final[tuple[Kind, ...]] = (REFERENCE, CPU, CUDA, POPTORCH, MACHINE)
UNPLACED: Final = (REFERENCE, CPU, CUDA)
"""Targets without tiles: there is no plan."""


def for_poptorch(target: str) -> bool:
    """Tell whether a target is a package for PopTorch.

    Examples
    --------
    >>> for_poptorch("poptorch"), for_poptorch("poptorch:bow"), for_poptorch("bow")
    (True, True, False)
    """
    return target.partition(":")[0] == POPTORCH


def machine_of(target: str) -> str:
    """Return the name, or the file, of the machine that a target is placed on.

    Examples
    --------
    >>> machine_of("poptorch"), machine_of("poptorch:bow"), machine_of("pod4")
    ('gc200', 'bow', 'pod4')
    """
    return (target.partition(":")[2] or "gc200") if for_poptorch(target) else target


def kind_of(target: str) -> Kind:
    """Return what kind of target a name or path stands for.

    Examples
    --------
    >>> kind_of("cpu"), kind_of("poptorch:bow"), kind_of("pod4"), kind_of("mine.toml")
    ('cpu', 'poptorch', 'machine', 'machine')
    """
    if for_poptorch(target):
        return POPTORCH
    return next((kind for kind in (REFERENCE, CPU, CUDA) if kind == target), MACHINE)
