"""Leaky integrate-and-fire neuron with a synaptic current."""

from __future__ import annotations

from snnc.compiler.neurons.library.resets import Firing, ResetMode, clamped, firing_neuron
from snnc.compiler.neurons.neuron import NeuronModel


def CubaLIF(  # noqa: N802 - the name of the neuron
    alpha: float = 0.9,
    beta: float = 0.9,
    threshold: float = 1.0,
    *,
    reset: ResetMode = "subtract",
    v_reset: float = 0.0,
    reset_delay: bool = True,
    detach: bool = True,
    strict: bool = True,
    input_kept: bool = False,
    compensated: bool = False,
    clamp: bool = False,
) -> NeuronModel:
    """Current-based LIF: a decaying synaptic current drives the membrane.

    With the default options, it is snnTorch's ``Synaptic`` (Eshraghian et al. 2023); ``reset="zero"`` also resets as in snnTorch::

        r    = H(v - threshold), detached
        syn' = alpha syn + i
        v'   = beta v + syn' - r threshold
        s    = H(v' - threshold)

    ``RSynaptic`` is this neuron in a network with recurrence. NIR's CubaLIF resets immediately (``reset_delay=False``).

    Parameters
    ----------
    alpha, beta
        Factors by which the synaptic current and the membrane potential decay in one step.
    threshold
        Membrane potential above which the neuron fires.
    v_reset
        Membrane potential after a reset, for ``reset="value"``.
    clamp
        Whether `alpha` and `beta` are clamped to [0, 1], which is useful only if they are learned.
    reset, reset_delay, detach, strict, input_kept, compensated
        See :class:`~snnc.compiler.neurons.library.resets.Firing`.
    """
    firing = Firing(reset, reset_delay, detach, strict, input_kept, compensated)
    decay = clamped("beta", clamp)
    current, params = f"syn = {clamped('alpha', clamp)}*syn + i", {"alpha": alpha, "beta": beta}
    return firing_neuron("CubaLIF", firing, lambda v: f"{decay}*{v} + syn", params, threshold=threshold, v_reset=v_reset, current=current)
