"""Leaky integrate-and-fire with an adaptive threshold."""

from __future__ import annotations

from snnc.compiler.neurons.library.resets import detached, spike_function
from snnc.compiler.neurons.neuron import NeuronModel, neuron


def ALIF(  # noqa: N802 - the name of the neuron
    beta: float = 0.9,
    rho: float = 0.97,
    kappa: float = 1.8,
    threshold: float = 1.0,
    *,
    normalised: bool = True,
    detach: bool = True,
    strict: bool = True,
) -> NeuronModel:
    """Adaptive LIF: every spike raises the threshold, which then decays to its resting value.

    ::

        z  = H(v - threshold - kappa b)
        b' = rho b + (1 - rho) z         (normalised; else rho b + z)
        v' = beta v + i - z threshold
        s  = H(v' - threshold - kappa b')

    The normalised form is that of Yin, Corradi & Bohte 2021, "Accurate and efficient time-domain classification with adaptive spiking
    recurrent neural networks"; the other form is that of Bellec et al. 2018, "Long short-term memory and learning-to-learn in networks of
    spiking neurons" (LSNN).

    Parameters
    ----------
    beta, rho
        Factors by which the membrane potential and the adaptation decay in one step.
    kappa
        Factor by which the adaptation raises the threshold.
    threshold
        Threshold at rest.
    normalised
        Whether the spike is scaled by ``1 - rho`` in the adaptation.
    detach
        Whether no gradient flows through the reset of the membrane potential; it always flows through the adaptation.
    strict
        Whether the neuron fires only above the threshold; otherwise it also fires at the threshold.
    """
    step, reset = spike_function(strict), detached("z", detach)
    return neuron(
        "ALIF",
        states={"v": 0.0, "b": 0.0},
        params={"beta": beta, "rho": rho, "kappa": kappa, "threshold": threshold},
        equations=f"""
            z = {step}(v - threshold - kappa*b)
            b = rho*b + {"(1 - rho)*z" if normalised else "z"}
            v = beta*v + i - {reset}*threshold
            s = {step}(v - threshold - kappa*b)
        """,
    )
