"""A neuron model prepared for code generation: straight-line forward and adjoint code under canonical names.

Canonical names, the only ones in emitted code (the author's are in ``labels``, for comments and reports):

=============  ======================================================================
``i0 i1 …``    currents at the input ports
``s0 s1 …``    states after the step; ``s0_prev`` the same before the step
``a0 a1 …``    parameters
``o0 o1 …``    outputs
``k0 k1 …``    intermediates of the forward code, which the backward code may compute again; ``r0 …`` of the backward code
``d_x``        gradient of the loss with respect to ``x``
=============  ======================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from snnc.compiler.neurons.expression import Assignment, Expression


@dataclass(frozen=True)
class Kernel:
    """One time step of a population and its adjoint.

    Every name is assigned once (static single assignment). No ``spike`` derivative is left unspecified: the surrogate is
    already in ``backward``. ``detach`` does not occur in either list; ``spike``/``spike_ge`` occur as 0/1 functions.

    Parameters
    ----------
    inputs, states, parameters, outputs
        Canonical names.
    forward
        Reads ``i*``, ``s*_prev``, ``a*``; assigns every ``s*`` and ``o*``.
    history
        States whose values of all steps (T + 1 of them, the initial one first) the adjoint reads, as ``s*_prev`` (slot t)
        or ``s*`` (slot t + 1).
    saved
        Further forward names (inputs, intermediates or outputs) to keep for each step because the adjoint cannot
        recompute them.
    backward
        Reads ``s*``, ``s*_prev`` of `history`, `saved`, ``a*``, and the incoming ``d_o*`` (this step's outputs) and ``d_s*``
        (the states, from the following step); assigns ``d_s*_prev``, ``d_i*`` and, for `learnable`, ``d_a*``
        (one value per neuron and sample; the backend sums over samples, and over neurons for a scalar; an assigned
        constant, such as the 0 of an input that is not read, stands for all of them). Forward values that it
        recomputes keep their forward names, including an ``s*`` outside `history`.
    learnable
        Parameters that ``backward`` differentiates.
    binary
        Outputs that are 0 or 1 by construction.
    labels
        Canonical name to the author's.
    rounded
        Names of `history` and `saved` that are stored as float16, and the offset subtracted before rounding: the adjoint reads
        ``offset + float16(value - offset)``. The forward code reads values that were never rounded.
    """

    inputs: tuple[str, ...]
    states: tuple[str, ...]
    parameters: tuple[str, ...]
    outputs: tuple[str, ...]
    forward: tuple[Assignment, ...]
    backward: tuple[Assignment, ...]
    history: tuple[str, ...]
    saved: tuple[str, ...]
    learnable: tuple[str, ...]
    binary: frozenset[str]
    labels: Mapping[str, str]
    rounded: Mapping[str, Expression] = field(default_factory=dict, metadata={"optional": True})
