"""Recognise a neuron model as a library neuron: both have the same responses (see :mod:`snnc.frontends.common.response`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from snnc.compiler.ir.graph import Array
from snnc.compiler.neurons.expression import Assignment, Symbol, call, substitute
from snnc.compiler.neurons.library import IF, LI, LIF, Alpha, CubaLIF, I
from snnc.compiler.neurons.neuron import NeuronModel, neuron
from snnc.frontends.common.response import Form, NotLinearError, Oracle, Response, close, respond

_CURRENT_LI: Final = "syn = alpha*syn + i\nv = beta*v + syn"
"""Equations of a leaky integrator with a synaptic current."""
_NO_DRIVE: Final = 1e-6
"""Magnitude up to which a constant current, or the effect of an initial state, counts as 0."""
_PATTERNS: Final = (0b0, 0b1, 0b10, 0b101, 0b110, 0b11111)
"""Patterns of spikes for which two neurons are compared; see :class:`Oracle`."""
_UNIT: Final = (np.ones(()), np.zeros(()))
"""Factor and offset of a current that is passed on unchanged."""
_RESETS: Final[tuple[Mapping[str, Any], ...]] = (
    {"reset": "subtract", "reset_delay": True},
    {"reset": "zero", "reset_delay": True, "input_kept": True},
    {"reset": "zero", "reset_delay": True, "input_kept": False},
    {"reset": "none"},
    {"reset": "subtract", "reset_delay": False},
    {"reset": "value", "reset_delay": False},
    {"reset": "subtract", "reset_delay": False, "compensated": True},
    {"reset": "zero", "reset_delay": False, "compensated": True},
    {"reset": "none", "reset_delay": False, "compensated": True},
)
"""Options of library neurons for each kind of reset, in the order in which they are tried."""


@dataclass(frozen=True, eq=False)
class Facts:
    """Properties of a recognised neuron; arrays contain one value per neuron."""

    name: str  # name of the library model
    decay: Array
    syn_decay: Array | None
    """Factors by which membrane potential and synaptic current are multiplied at every step."""
    gain: Array  # factor by which the input current is multiplied
    drive: Array  # constant that is added to the input current at every step
    threshold: Array | None = None  # threshold of the membrane potential; None for integrators
    compare: str = ">"  # the neuron fires only above its threshold (">"), or also at it (">=")
    reset: str = "none"  # kind of reset: "subtract", "zero", "value" or "none"
    reset_delay: bool = True  # whether the reset takes effect in the step after the spike
    v_reset: Array | None = None  # membrane potential after a reset to a value


@dataclass(frozen=True, eq=False)
class _Candidate:
    facts: Facts
    model: NeuronModel
    parameters: Mapping[str, Array]
    start: Array
    """Membrane potential before the first step that corresponds to zero states of the recognised model."""


def recognise(model: NeuronModel, parameters: Mapping[str, Array]) -> Facts | None:
    """Return the properties of the library neuron equivalent to `model`; None if there is none."""
    neurons = max((np.size(v) for v in parameters.values()), default=1)
    try:
        rest = respond(model, parameters, Oracle(0), _UNIT, neurons)
        for candidate in _candidates(rest, parameters):
            if _same(model, parameters, candidate, neurons):
                return candidate.facts
    except NotLinearError:
        return None
    return None


def _same(model: NeuronModel, parameters: Mapping[str, Array], candidate: _Candidate, neurons: int) -> bool:
    facts = candidate.facts
    for pattern in _PATTERNS:
        oracle = Oracle(pattern)
        drive = np.zeros(()) if "drive" in candidate.parameters else facts.drive
        theirs = respond(candidate.model, candidate.parameters, oracle, (facts.gain, drive), neurons, {"v": candidate.start})
        ours = respond(model, parameters, oracle, _UNIT, neurons)
        if ours.kinds != theirs.kinds or not _close(ours.membranes, theirs.membranes):
            return False
        if not ours.membranes and not any(_close(forms, next(iter(theirs.values.values()))) for forms in ours.values.values()):
            return False
    return True


def _close(ours: list[Form], theirs: list[Form]) -> bool:
    return all(close(a, b) for a, b in zip(ours, theirs, strict=True))


def _candidates(rest: Response, parameters: Mapping[str, Array]) -> Iterator[_Candidate]:
    """Yield library neurons whose response without spikes is `rest`; `forms` is [steps, constant and coefficients, neurons]."""
    if rest.membranes:
        forms, strict = np.stack(rest.membranes), rest.kinds[0] == "spike"
        named = [np.asarray(parameters["threshold"], np.float64).reshape(-1)] if "threshold" in parameters else []
        for threshold in (*named, -forms[0, 0]):
            yield from _spiking(forms, threshold, strict, parameters)
        return
    for values in rest.values.values():
        yield from _integrators(np.stack(values))


def _impulse_decays(impulse: Array) -> tuple[Array, Array, Array] | None:
    """Return gain and the two decays of the impulse response ``h_k = gain * sum a^j b^(k-j)``; None for any other response.

    For a single decay, b is 0. Otherwise ``h_(k+2) = (a + b) h_(k+1) - a b h_k`` yields the sum and the product of the decays.
    """
    gain, h1, h2, h3 = impulse[:4]
    if not gain.all():
        return None
    with np.errstate(all="ignore"):
        first = h1 / gain
        if close(h2, first * h1) and close(h3, first * h2):
            return gain, first, np.zeros_like(first)
        product = first**2 - h2 / gain
    return (gain, *_decays(first, product)) if close(h3, first * h2 - product * h1) else None


def _decays(total: Array, product: Array) -> tuple[Array, Array]:
    """Return two decays, the larger first, from their sum and their product."""
    with np.errstate(all="ignore"):
        root = np.sqrt(np.maximum(total**2 - 4 * product, 0.0))
    return (total + root) / 2, (total - root) / 2


def _spiking(forms: Array, threshold: Array, strict: bool, parameters: Mapping[str, Array]) -> Iterator[_Candidate]:
    """Yield library neurons with this response without spikes and this threshold, for all kinds of reset."""
    impulse = forms[:, 1]
    decays = _impulse_decays(impulse)
    if decays is None:
        yield from _alpha(impulse, threshold, strict)
        return
    gain, first, second = decays
    resets = [np.asarray(v, np.float64).reshape(-1) for v in parameters.values()]
    for decay, syn in _roles(first, second):
        drive, start = _offset(forms[:2, 0] + threshold, decay)
        common = {"gain": gain, "drive": drive, "syn_decay": syn, "threshold": threshold, "compare": ">" if strict else ">="}
        for options in _RESETS:
            for value in resets if options["reset"] == "value" else [None]:
                yield _firing_candidate(decay, common, options, value, start)


def _roles(first: Array, second: Array) -> Iterator[tuple[Array, Array | None]]:
    """Yield possible decays of (membrane, synaptic current); a decay shared by all neurons has the same role in all neurons."""
    if not second.any():
        yield first, None
        return
    yield first, second
    yield second, first
    for shared in (first[0], second[0]):
        is_first, is_second = np.isclose(first, shared, rtol=1e-4), np.isclose(second, shared, rtol=1e-4)
        if (is_first | is_second).all() and not (is_first.all() or is_second.all()):
            other = np.where(is_first, second, first)
            yield other, np.full_like(other, shared)
            yield np.full_like(other, shared), other


def _offset(rest: Array, decay: Array) -> tuple[Array, Array]:
    """Return the constant current and the initial membrane potential of a neuron, from its potential without input.

    `rest` contains the membrane potential after the first and after the second step.
    """
    drive = rest[1] - decay * rest[0]
    if not np.abs(drive).max() > _NO_DRIVE:
        drive = np.zeros_like(drive)
    gap = rest[0] - drive
    with np.errstate(all="ignore"):
        start = np.where(np.abs(gap) > _NO_DRIVE, gap / decay, 0.0)
    return drive, start if np.isfinite(start).all() else np.zeros_like(start)


def _firing_candidate(decay: Array, common: Mapping[str, Any], options: Mapping[str, Any], value: Array | None, start: Array) -> _Candidate:
    """Return the spiking library neuron with these decays and options; `value` is the membrane potential after a reset to a value."""
    syn = common["syn_decay"]
    make = CubaLIF if syn is not None else IF if (np.abs(decay - 1) < 1e-7).all() else LIF
    model = make(**options, strict=common["compare"] == ">")
    parameters = {"beta": decay, "alpha": syn, "threshold": common["threshold"], "v_reset": value}
    drive = np.asarray(common["drive"])
    if syn is not None and drive.any():
        model = _driven(model)
        parameters["drive"] = drive
    arrays = {k: np.asarray(v) for k, v in parameters.items() if k in model.parameters}
    facts = Facts(model.name, decay, reset=options["reset"], reset_delay=options.get("reset_delay", True), v_reset=value, **common)
    return _Candidate(facts, model, arrays, start)


def _driven(model: NeuronModel) -> NeuronModel:
    """Return a current-based model whose membrane also receives a constant current."""
    lines = tuple(
        line
        if line.target == "syn"
        else Assignment(line.target, substitute(line.value, {"syn": call("add", Symbol("syn"), Symbol("drive"))}))
        for line in model.equations
    )
    return replace(model, parameters={**model.parameters, "drive": 0.0}, equations=lines)


def _alpha(impulse: Array, threshold: Array, strict: bool) -> Iterator[_Candidate]:
    """Yield alpha neurons, whose impulse response is the difference of two decays, ``h_k = tau (a^k - b^k)``."""
    first, h1, h2, h3, h4 = impulse[:5]
    if first.any() or not h1.all():
        return
    with np.errstate(all="ignore"):
        total = h2 / h1
        product = total**2 - h3 / h1
    alpha, beta = _decays(total, product)
    if not close(h4, total * h3 - product * h2) or not ((beta > 0) & (alpha <= 1) & (beta < alpha)).all():
        return
    tau = h1 / (alpha - beta)
    for reset in ("zero", "subtract", "none"):
        model = Alpha(reset=reset, strict=strict, fixed_tau=True)
        facts = Facts(model.name, beta, alpha, np.ones(()), np.zeros(()), threshold, ">" if strict else ">=", reset)
        yield _Candidate(facts, model, {"alpha": alpha, "beta": beta, "tau": tau, "threshold": threshold}, np.zeros(()))


def _integrators(forms: Array) -> Iterator[_Candidate]:
    decays = _impulse_decays(forms[:, 1])
    if decays is None:
        return
    gain, decay, second = decays
    if not second.any():
        drive, start = _offset(forms[:2, 0], decay)
        model = I() if (decay == 1).all() else LI()
        yield _Candidate(Facts(model.name, decay, None, gain, drive), model, {"beta": decay} if "beta" in model.parameters else {}, start)
        return
    model = _driven(neuron("LI", states={"syn": 0, "v": 0}, params={"alpha": 0, "beta": 0}, equations=_CURRENT_LI, output="v"))
    for membrane, syn in _roles(decay, second):
        if syn is not None:
            drive, start = _offset(forms[:2, 0], membrane)
            parameters = {"alpha": syn, "beta": membrane, "drive": drive}
            yield _Candidate(Facts("LI", membrane, syn, gain, drive), model, parameters, start)
