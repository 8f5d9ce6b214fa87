"""Neuron models prepared for code generation: lists of assignments for a step and for its adjoint.

The assignments contain only canonical names; ``labels`` contains the names in the model, for comments and reports:

=============  ======================================================================
``i0 i1 …``    currents at the input ports
``s0 s1 …``    states after the step; ``s0_prev`` before the step
``a0 a1 …``    parameters
``o0 o1 …``    outputs
``k0 k1 …``    intermediate values of the forward code, which the backward code may recompute; ``r0 …`` of the backward code
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

    Every name is assigned once. The derivative of ``spike`` is resolved: ``backward`` contains the surrogate. ``detach`` does not occur in
    the code; ``spike`` and ``spike_ge`` occur as functions with the values 0 and 1.
    """

    # Canonical names.
    inputs: tuple[str, ...]
    states: tuple[str, ...]
    parameters: tuple[str, ...]
    outputs: tuple[str, ...]
    forward: tuple[Assignment, ...]  # forward code: reads ``i*``, ``s*_prev``, ``a*``; assigns every ``s*`` and ``o*``
    backward: tuple[Assignment, ...]
    """Adjoint code. It reads ``s*`` and ``s*_prev`` of `history`, `saved`, ``a*``, and the incoming gradients ``d_o*`` (of this step's
    outputs) and ``d_s*`` (of the states, from the following step). It assigns ``d_s*_prev``, ``d_i*`` and, for `learnable`, ``d_a*``:
    one value per neuron and sample, which the backend sums over samples, and over neurons for a scalar. An assigned constant, such as 0
    for an unused input, applies to all neurons and samples. Recomputed forward values keep their forward names, including an ``s*``
    that is not in `history`."""
    history: tuple[str, ...]
    """States for which the adjoint reads the values of all steps (T + 1 values, the initial one first), as ``s*_prev`` (slot t) or
    ``s*`` (slot t + 1)."""
    saved: tuple[str, ...]
    """Other forward names (inputs, intermediate values or outputs) that are stored at each step: the adjoint reads them, or recomputes
    other values from them."""
    learnable: tuple[str, ...]  # parameters for which ``backward`` computes gradients
    binary: frozenset[str]  # outputs that are always 0 or 1
    labels: Mapping[str, str]  # names in the model, by canonical name
    rounded: Mapping[str, Expression] = field(default_factory=dict, metadata={"optional": True})
    """For each name of `history` and `saved` that is stored as float16: the offset, which is subtracted before rounding. The adjoint
    reads ``offset + float16(value - offset)``; the forward code reads unrounded values."""
    halves: frozenset[str] = field(default=frozenset(), metadata={"optional": True})
    """States whose values are float16 numbers, because ``forward`` rounds each value assigned to them."""
