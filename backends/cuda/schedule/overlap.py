"""Weight gradients in a second CUDA stream, at the same time as the backward kernel of a recurrent population (a *recurrent core*).

A recurrent core leaves multiprocessors idle. The deltas of a layer are complete after its own backward pass, so its weight gradients need
not wait for the layers before it. The stream does not change the order of sums, so results are the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from snnc.backends.cuda.schedule.launches import NARROW
from snnc.backends.native.storage import SequenceStorage
from snnc.compiler.ir.step_operations import DenseWeightGradient

LARGEST_CLUSTER: Final = 1024
"""Maximum number of neurons of a core whose blocks form clusters; larger cores are expected to occupy all multiprocessors."""


@dataclass(frozen=True)
class BackwardCore:
    """A recurrent core of the backward pass."""

    label: str
    first: int
    """Index of its first host statement in the backward pass."""
    complete: frozenset[str]
    """Currents whose deltas are complete before it starts."""


def overlapping(storage: SequenceStorage, cores: Sequence[BackwardCore]) -> dict[str, str]:
    """Return gradient -> label of the core during which it is computed: the first one that starts after its deltas are complete.

    Gradients of narrow layers are left out: their kernels take less time than two more dependencies between streams. `cores` are in the
    order of the backward pass.
    """
    core_of = {}
    for op in storage.program.backward:
        if isinstance(op, DenseWeightGradient) and storage.size(op.target) > NARROW:
            core = next((core for core in cores if op.target in core.complete), None)
            if core is not None:
                core_of[op.gradient] = core.label
    return core_of


def interleave(backward: Sequence[str], cores: Sequence[BackwardCore], beside: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the host statements of the backward pass, with the :func:`overlapping` gradients in a second stream.

    In `backward`, each of `cores` has two statements: one starts its timer, the other launches it. `beside` has the statements of gradients
    by the label of the core.
    """
    statements = list(backward)
    for core in sorted(cores, key=lambda core: -core.first):
        if core.label in beside:
            launched = ["beside.run(is_timed(), [&] {", *(f"  {line}" for line in beside[core.label]), "});"]
            statements[core.first : core.first + 2] = ["beside.mark();", *statements[core.first : core.first + 2], *launched]
    return statements
