"""Neuron whose membrane potential responds to a spike like an alpha function: it rises and then decays."""

from __future__ import annotations

import math

from snnc.compiler.errors import NeuronDefinitionError
from snnc.compiler.neurons.library.resets import check_reset, clamped, detached, spike_function
from snnc.compiler.neurons.neuron import NeuronModel, neuron

_RESETS = {
    "none": ("exc = e", "inh = h", "v = {tau}*(e + h)"),
    "zero": ("exc = e - e*r", "inh = h - h*r", "v = m - m*r"),
    "subtract": ("exc = e - threshold*r", "inh = h - h*r", "v = m + w*r"),
}
"""Equations by reset: r is the spike that resets; e, h and m are exc, inh and v of the new step before the reset; w is the old inh."""


def Alpha(  # noqa: N802 - the name of the neuron
    alpha: float = 0.9,
    beta: float = 0.8,
    threshold: float = 1.0,
    *,
    reset: str = "zero",
    detach: bool = True,
    strict: bool = True,
    fixed_tau: bool = False,
    clamp: bool = False,
) -> NeuronModel:
    """Alpha neuron: its membrane potential is a factor times the difference of two decaying currents, as in snnTorch's ``Alpha``.

    ::

        r    = H(v - threshold), detached
        exc' = alpha exc + i
        inh' = beta inh - i
        v'   = tau (exc' + inh'),   tau = log(alpha) / (log(beta) - log(alpha)) + 1
        s    = H(v' - threshold)

    If r is 1, ``reset="zero"`` clears exc', inh' and v'; ``"subtract"`` subtracts the threshold from exc', clears inh' and
    adds the old inh to v' (as snnTorch does); ``"none"`` changes nothing.

    Parameters
    ----------
    alpha, beta
        Factors by which the excitatory and the inhibitory current decay in one step; alpha > beta.
    threshold
        Membrane potential above which the neuron fires.
    fixed_tau
        Whether ``tau`` is a parameter with the value above, which saves three logarithms per neuron and step; no gradient of alpha and
        beta then flows through it.
    clamp
        Whether `alpha` and `beta` are clamped to [0, 1], which is useful only if they are learned.
    reset, detach, strict
        As in :class:`~snnc.compiler.neurons.library.resets.Firing`; the reset is always delayed, and ``"value"`` is not supported.

    Raises
    ------
    NeuronDefinitionError
        ``0 < beta < alpha <= 1`` does not hold, or the reset is unknown.
    """
    check_reset(reset, _RESETS, "Alpha")
    if not 0 < beta < alpha <= 1:
        raise NeuronDefinitionError(f"Alpha: 0 < beta < alpha <= 1 must hold, but beta = {beta:g} and alpha = {alpha:g}.")
    a, b = clamped("alpha", clamp), clamped("beta", clamp)
    spike = f"{spike_function(strict)}(v - threshold)"
    tau = "tau" if fixed_tau else f"(log({a})/(log({b}) - log({a})) + 1)"
    before = {"none": [], "zero": [f"m = {tau}*(e + h)"], "subtract": ["w = inh", f"m = {tau}*(e + h)"]}[reset]
    lines = [
        *([f"r = {detached(spike, detach)}"] if reset != "none" else []),
        f"e = {a}*exc + i",
        f"h = {b}*inh - i",
        *before,
        *(line.format(tau=tau) for line in _RESETS[reset]),
        f"s = {spike}",
    ]
    value = math.log(alpha) / (math.log(beta) - math.log(alpha)) + 1
    return neuron(
        "Alpha",
        states={"exc": 0.0, "inh": 0.0, "v": 0.0},
        params={"alpha": alpha, "beta": beta, **({"tau": value} if fixed_tau else {}), "threshold": threshold},
        equations="\n".join(lines),
    )
