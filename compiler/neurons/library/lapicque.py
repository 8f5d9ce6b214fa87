"""Lapicque's neuron, an RC circuit: a resistor and a capacitor in parallel."""

from __future__ import annotations

import math

from snnc.compiler.errors import NeuronDefinitionError
from snnc.compiler.neurons.library.resets import Firing, ResetMode, firing_neuron
from snnc.compiler.neurons.neuron import NeuronModel


def Lapicque(  # noqa: N802 - the name of the neuron
    R: float | None = None,
    C: float | None = None,
    time_step: float = 1.0,
    threshold: float = 1.0,
    *,
    beta: float | None = None,
    reset: ResetMode = "subtract",
    v_reset: float = 0.0,
    detach: bool = True,
    strict: bool = True,
    input_kept: bool = False,
) -> NeuronModel:
    """RC circuit (Lapicque 1907) with Euler steps: snnTorch's ``Lapicque``.

    ::

        r  = H(v - threshold), detached
        v' = i T/C + (1 - T/(R C)) v - r threshold
        s  = H(v' - threshold)

    Parameters
    ----------
    R, C
        Resistance and capacitance; a missing one follows from ``beta = exp(-T/(R C))``, or is 1.
    time_step
        Length T of a time step.
    threshold
        Membrane potential above which the neuron fires.
    beta
        Factor by which the membrane potential decays in one step, instead of `R`, `C` or both.
    v_reset
        Membrane potential after a reset, for ``reset="value"``.
    reset, detach, strict, input_kept
        As in :class:`~snnc.compiler.neurons.library.resets.Firing`; the reset is always delayed.

    Raises
    ------
    NeuronDefinitionError
        `beta` is not between 0 and 1, or is given together with both `R` and `C`; or the reset is unknown.
    """
    resistance, capacitance = _circuit(R, C, time_step, beta)
    firing = Firing(reset, True, detach, strict, input_kept)
    params = {"R": resistance, "C": capacitance, "T": time_step}
    update = "i*R*(1/(R*C))*T + (1 - T/(R*C))*{}".format
    return firing_neuron("Lapicque", firing, update, params, threshold=threshold, v_reset=v_reset)


def _circuit(R: float | None, C: float | None, time_step: float, beta: float | None) -> tuple[float, float]:
    if beta is None:
        return (1.0 if R is None else R), (1.0 if C is None else C)
    if not 0 < beta < 1:
        raise NeuronDefinitionError(f"Lapicque: beta must be between 0 and 1, not {beta:g}.")
    if R is not None and C is not None:
        raise NeuronDefinitionError("Lapicque: give at most two of beta, R and C.")
    product = time_step / math.log(1 / beta)
    if C is not None:
        return product / C, C
    resistance = 1.0 if R is None else R
    return resistance, product / resistance
