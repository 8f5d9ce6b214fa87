"""Leaky and perfect integrate-and-fire neurons, also with a synaptic current, and integrators that do not fire, for readouts."""

from __future__ import annotations

from snnc.compiler.neurons.library.resets import Firing, ResetMode, clamped, firing_neuron
from snnc.compiler.neurons.neuron import NeuronModel, neuron


def LIF(  # noqa: N802 - the name of the neuron
    beta: float = 0.9,
    threshold: float = 1.0,
    *,
    reset: ResetMode = "subtract",
    v_reset: float = 0.0,
    reset_delay: bool = True,
    detach: bool = True,
    strict: bool = True,
    input_kept: bool = True,
    compensated: bool = False,
    clamp: bool = False,
) -> NeuronModel:
    """Leaky integrate-and-fire: ``v' = beta v + i``, ``s = H(v' - threshold)``, and a reset.

    With the default options, it is snnTorch's ``Leaky`` (Eshraghian et al. 2023, "Training spiking neural networks using lessons from deep
    learning")::

        r  = H(v - threshold), detached
        v' = beta v + i - r threshold
        s  = H(v' - threshold)

    ``reset="zero"`` also resets as in snnTorch. snnTorch's ``RLeaky`` is this neuron with ``input_kept=False`` in a recurrent network.

    Parameters
    ----------
    beta
        Factor by which the membrane potential decays in one step.
    threshold
        Membrane potential above which the neuron fires.
    v_reset
        Membrane potential after a reset, for ``reset="value"``.
    clamp
        Whether `beta` is clamped to [0, 1], which is useful only if it is learned.
    reset, reset_delay, detach, strict, input_kept, compensated
        See :class:`~snnc.compiler.neurons.library.resets.Firing`.
    """
    firing = Firing(reset, reset_delay, detach, strict, input_kept, compensated)
    decay = clamped("beta", clamp)
    return firing_neuron("LIF", firing, lambda v: f"{decay}*{v} + i", {"beta": beta}, threshold=threshold, v_reset=v_reset)


def IF(  # noqa: N802 - the name of the neuron
    threshold: float = 1.0,
    *,
    reset: ResetMode = "subtract",
    v_reset: float = 0.0,
    reset_delay: bool = True,
    detach: bool = True,
    strict: bool = True,
    input_kept: bool = True,
    compensated: bool = False,
) -> NeuronModel:
    """Perfect integrate-and-fire: ``v' = v + i``, ``s = H(v' - threshold)``, and a reset; see :func:`LIF`."""
    firing = Firing(reset, reset_delay, detach, strict, input_kept, compensated)
    return firing_neuron("IF", firing, lambda v: f"{v} + i", {}, threshold=threshold, v_reset=v_reset)


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

    With the default options, it is snnTorch's ``Synaptic``::

        r    = H(v - threshold), detached
        syn' = alpha syn + i
        v'   = beta v + syn' - r threshold
        s    = H(v' - threshold)

    ``reset="zero"`` also resets as in snnTorch. snnTorch's ``RSynaptic`` is this neuron in a network with recurrence. NIR's CubaLIF resets
    immediately (``reset_delay=False``).

    Parameters
    ----------
    alpha, beta
        Factors by which the synaptic current and the membrane potential decay in one step.
    threshold, v_reset
        As in :func:`LIF`.
    clamp
        Whether `alpha` and `beta` are clamped to [0, 1], which is useful only if they are learned.
    reset, reset_delay, detach, strict, input_kept, compensated
        See :class:`~snnc.compiler.neurons.library.resets.Firing`.
    """
    firing = Firing(reset, reset_delay, detach, strict, input_kept, compensated)
    decay = clamped("beta", clamp)
    current, params = f"syn = {clamped('alpha', clamp)}*syn + i", {"alpha": alpha, "beta": beta}
    return firing_neuron("CubaLIF", firing, lambda v: f"{decay}*{v} + syn", params, threshold=threshold, v_reset=v_reset, current=current)


def LI(beta: float = 0.9, *, clamp: bool = False) -> NeuronModel:  # noqa: N802 - the name of the neuron
    """Leaky integrator: ``v' = beta v + i``; the output is v'. `clamp` limits `beta` to [0, 1]."""
    return neuron("LI", states={"v": 0.0}, params={"beta": beta}, equations=f"v = {clamped('beta', clamp)}*v + i", output="v")


def I() -> NeuronModel:  # noqa: E743, N802 - the name of the neuron (in NIR too)
    """Integrator without leak: ``v' = v + i``; the output is v'."""
    return neuron("I", states={"v": 0.0}, equations="v = v + i", output="v")
