"""Equations of firing and reset, shared by the integrate-and-fire neurons.

v is the membrane potential, f the model's update of it (which adds the current), r the spike that resets, and R the value after a reset.
A delayed reset uses the spike of the previous step; an immediate reset uses the spike of this step, after the neuron fires. A delayed
reset to zero or to a value has two forms: it keeps the current that arrives in the step of the reset (`input_kept`), or discards it.

==========  ======================  ====================  ====================
`reset`     delayed, current kept   delayed, discarded    immediate
==========  ======================  ====================  ====================
"subtract"  f(v) - r threshold      f(v) - r threshold    f(v) - r threshold
"zero"      f((1-r) v)              (1-r) f(v)            (1-r) f(v)
"value"     f((1-r) v + r R)        (1-r) f(v) + r R      (1-r) f(v) + r R
"none"      f(v)                    f(v)                  f(v)
==========  ======================  ====================  ====================
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from snnc.compiler.errors import NeuronDefinitionError
from snnc.compiler.neurons.neuron import NeuronModel, neuron

ResetMode: TypeAlias = Literal["subtract", "zero", "value", "none"]
Update: TypeAlias = Callable[[str], str]
"""Function from the text of the membrane potential to the text of its new value."""


@dataclass(frozen=True)
class Firing:
    """Firing and reset of a membrane; an unknown reset, or one that does not allow `compensated`, raises a NeuronDefinitionError."""

    reset: ResetMode = "subtract"  # effect of a spike on the membrane
    reset_delay: bool = True
    """Whether the reset is in the step after the spike, as in snnTorch; otherwise it is immediate (SpikingJelly, Norse, NIR)."""
    detach: bool = True  # whether no gradient flows through the spike that resets
    strict: bool = True  # whether the neuron fires at ``v > threshold``; otherwise at ``v >= threshold``
    input_kept: bool = True
    """Whether a delayed reset to zero or to a value keeps the arriving current, as snnTorch's Leaky does. Other snnTorch neurons do not."""
    compensated: bool = False
    """Whether to reset like snnTorch with ``reset_delay=False``. Let r be 1 if the potential of the previous step is still above the
    threshold, and s the spike of this step. A delayed reset by r comes before the neuron fires. After it fires, "subtract" subtracts
    (s - r) threshold, and "zero" multiplies the potential by 1 - (s - r). The result differs from the plain immediate reset only if r is 1,
    that is, if a neuron is still above the threshold after a reset."""

    def __post_init__(self) -> None:
        check_reset(self.reset, get_args(ResetMode))
        if self.compensated and (self.reset_delay or self.reset == "value"):
            raise NeuronDefinitionError('"compensated" needs reset_delay=False and the reset subtract, zero or none.')

    @property
    def parameters(self) -> tuple[str, ...]:
        """Parameters that the equations read."""
        return ("threshold", "v_reset") if self.reset == "value" else ("threshold",)

    def spike(self, membrane: str = "v") -> str:
        """Return the text of the spike function of `membrane`."""
        return f"{spike_function(self.strict)}({membrane} - threshold)"

    def equations(self, update: Update, membrane: str = "v") -> str:
        """Return the equations that update, fire and reset `membrane`; the spike is ``s``."""
        if self.reset == "none":
            return f"{membrane} = {update(membrane)}\ns = {self.spike(membrane)}"
        if self.reset_delay:
            return f"r = {detached(self.spike(membrane), self.detach)}\n{self._delayed(update, membrane)}\ns = {self.spike(membrane)}"
        if self.compensated:
            before = f"r = detach({self.spike(membrane)})\n{self._delayed(update, membrane)}\n"
            after = self._immediate(membrane, f"({detached('s', self.detach)} - r)", subtracts=True)
        else:
            before = f"{membrane} = {update(membrane)}\n"
            after = self._immediate(membrane, detached("s", self.detach))
        return f"{before}s = {self.spike(membrane)}\n{membrane} = {after}"

    def _delayed(self, update: Update, membrane: str) -> str:
        """Return the equation that updates and resets the membrane by the spike ``r`` of the previous step."""
        if self.reset == "subtract":
            return f"{membrane} = {update(membrane)} - r*threshold"
        value = " + r*v_reset" if self.reset == "value" else ""
        if not self.input_kept:
            return f"{membrane} = (1 - r)*({update(membrane)}){value}"
        kept = f"((1 - r)*{membrane}{value})"
        return f"{membrane} = {update(kept)}"

    def _immediate(self, membrane: str, spike: str, *, subtracts: bool = False) -> str:
        """Return the text of the membrane after a reset by `spike`; with `subtracts`, a reset to 0 is written as a subtraction."""
        if self.reset == "subtract":
            return f"{membrane} - {spike}*threshold"
        if subtracts:
            return f"{membrane} - {spike}*{membrane}"
        value = f" + {spike}*v_reset" if self.reset == "value" else ""
        return f"(1 - {spike})*{membrane}{value}"


def firing_neuron(
    name: str, firing: Firing, update: Update, params: Mapping[str, float], *, threshold: float, v_reset: float, current: str = ""
) -> NeuronModel:
    """Return the neuron `name`: `update` changes its membrane ``v`` in a step, and `firing` describes when it fires and is reset.

    `params` are parameters of `update` and of `current`, the equation of the synaptic current ``syn``, if the neuron has one.
    """
    defaults = {"threshold": threshold, "v_reset": v_reset}
    return neuron(
        name,
        states={"syn": 0.0, "v": 0.0} if current else {"v": 0.0},
        params={**params, **{parameter: defaults[parameter] for parameter in firing.parameters}},
        equations=f"{current}\n{firing.equations(update)}".lstrip(),
    )


def clamped(parameter: str, clamp: bool) -> str:
    """Return the text that reads `parameter`, limited to [0, 1] if `clamp`, as in every forward pass of snnTorch."""
    return f"min(max({parameter}, 0), 1)" if clamp else parameter


def detached(text: str, detach: bool) -> str:
    """Return `text`, in a call of ``detach`` if `detach`, so that no gradient flows through it."""
    return f"detach({text})" if detach else text


def spike_function(strict: bool) -> str:
    """Return the name of the function that fires above 0 or, if not `strict`, at or above 0."""
    return "spike" if strict else "spike_ge"


def check_reset(reset: str, known: Collection[str], neuron_name: str = "") -> None:
    """Check that a reset is one of `known`, or raise a :class:`NeuronDefinitionError` whose message begins with `neuron_name`."""
    if reset not in known:
        where = f"{neuron_name}: " if neuron_name else ""
        raise NeuronDefinitionError(f"{where}the reset {reset!r} is unknown; use one of {', '.join(known)}.")
