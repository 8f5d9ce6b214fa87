"""Convert the neurons of a graph to NIR's neurons."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np

from snnc.compiler.ir.graph import Array, Population
from snnc.compiler.neurons.library import Threshold
from snnc.compiler.neurons.library.resets import Firing
from snnc.compiler.neurons.neuron import NeuronModel
from snnc.frontends.common.recognise import Facts, recognise
from snnc.frontends.common.response import Oracle, close, respond
from snnc.frontends.nir.dialects import find_dialect
from snnc.frontends.nir.errors import NotInNirError
from snnc.frontends.nir.neurons import UPDATES, library, standard
from snnc.frontends.nir.neurons import population as nir_population
from snnc.frontends.nir.reading.fields import NirNode

Fields: TypeAlias = dict[str, Array]


@dataclass(frozen=True)
class _Form:
    """A neuron model whose equations are those of a NIR node, and the type of the node."""

    kind: str
    has_factors: bool  # whether the equations are those of snnc's library, with decays per step; else with dt, tau and r, as in NIR
    model: NeuronModel


def nir_fields(name: str, population: Population, dt: float) -> tuple[str, Fields]:
    """Return the type and the fields of the NIR node for `population`, which messages call `name`; `dt` is in seconds per step.

    If NIR has no such neuron, a NotInNirError says why.
    """
    where = f"{name!r} ({population.model.name})"
    nonzero = [s for s, v in {**population.model.states, **population.initial}.items() if np.asarray(v).any()]
    if nonzero:
        raise NotInNirError(f"{where} starts with {', '.join(nonzero)} other than 0; NIR has no initial states. Start it at 0.")
    values = {k: np.asarray(v, np.float64) for k, v in {**population.model.parameters, **population.parameters}.items()}
    form = next((f for f in _forms() if _same(f.model, population.model)), None)
    if form is None:
        kind, fields = _recognised(where, population, dt)
    elif form.kind == "Threshold":
        kind, fields = form.kind, {"threshold": values["threshold"]}
    else:
        kind = form.kind
        fields = _from_factors(kind, values, dt, where) if form.has_factors else _standard(kind, values, dt)
    return kind, {k: np.ascontiguousarray(np.broadcast_to(v, population.shape)) for k, v in fields.items()}


def _forms() -> Iterator[_Form]:
    """Yield the neuron models whose equations are those of a NIR node; :func:`_recognised` handles equivalent ones."""
    yield _Form("Threshold", False, Threshold())
    for kind in UPDATES:
        yield _Form(kind, True, library(kind, None))
        yield _Form(kind, False, standard(kind, None))
        for detach in (True, False):
            for firing in (Firing("zero", False, detach), Firing("value", False, detach)):
                yield _Form(f"{kind}F", True, library(f"{kind}F", firing))
                yield _Form(f"{kind}F", False, standard(f"{kind}F", firing))


def _same(one: NeuronModel, other: NeuronModel) -> bool:
    """Return whether two models are equal, apart from their names and default values."""
    first, second = ((m.inputs, list(m.states), set(m.parameters), m.equations, m.outputs) for m in (one, other))
    return first == second


def _standard(kind: str, values: Mapping[str, Array], dt: float) -> Fields:
    """Return the fields for equations with dt, tau and r, converted if the population's own dt differs from `dt`."""
    own_dt = values["dt"]
    scale = np.asarray(1.0) if (own_dt.astype(np.float32) == np.float32(dt)).all() else dt / own_dt
    fields = {k: v for k, v in values.items() if k not in ("dt", "threshold", "v_reset")}
    fields = {k: v * scale if k.startswith("tau") else v for k, v in fields.items()}
    if kind in ("I", "IF"):
        fields["r"] = fields["r"] / scale
    return fields | _thresholds(values.get("threshold"), values.get("v_reset"))


def _from_factors(kind: str, values: Mapping[str, Array], dt: float, where: str) -> Fields:
    """Return the fields for equations with decay factors per step, gain 1 and v_leak 0."""
    one, zero = np.ones(()), np.zeros(())
    decays = values.get("beta", one), values.get("alpha")
    return _from_facts(kind, Facts(kind, *decays, one, zero, values.get("threshold"), v_reset=values.get("v_reset")), dt, where)


def _thresholds(threshold: Array | None, v_reset: Array | None) -> Fields:
    return {} if threshold is None else {"v_threshold": threshold, "v_reset": np.zeros(()) if v_reset is None else v_reset}


def _tau(factor: Array, dt: float, where: str) -> Array:
    if (factor >= 1).any():
        raise NotInNirError(
            f"{where} keeps {factor.max():g} of its state per step, but a NIR time constant requires less than 1. "
            "Use a neuron without leak (IF, I)."
        )
    return np.asarray(dt / (1 - factor))


_PATTERNS: Final = (0b0, 0b1, 0b10, 0b101, 0b11011)
"""Patterns of spikes (see :class:`Oracle`) for which two neurons are compared."""


def _recognised(where: str, population: Population, dt: float) -> tuple[str, Fields]:
    """Return the type and the fields of a NIR neuron that responds to currents like `population`, for all :data:`_PATTERNS` of spikes."""
    facts = recognise(population.model, population.parameters)
    if facts is None or facts.name not in ("I", "IF", "LI", "LIF", "CubaLIF"):
        raise NotInNirError(
            f"{where} has the equations of no NIR neuron (I, IF, LI, LIF, CubaLI, CubaLIF, Threshold): "
            f"{population.model.text.replace(chr(10), '; ')[:200]}. NIR cannot express adaptation or other states."
        )
    kind = "CubaLI" if facts.name == "LI" and facts.syn_decay is not None else facts.name
    reason = _reason(facts)
    if not reason:
        fields = {k: _spread(v, population) for k, v in _from_facts(kind, facts, dt, where).items()}
        if _equal(population, nir_population(NirNode("", kind, fields), population.shape, dt, find_dialect("nir"))):
            return kind, fields
        reason = "is reset differently from NIR's neurons, which are immediately set to v_reset"
    raise NotInNirError(f"{where} {reason}. Choose a neuron that NIR has, or write the network as .onnx.")


def _reason(facts: Facts) -> str:
    if facts.threshold is None:
        return ""
    if facts.compare != ">":
        return "fires at or above its threshold, but NIR's neurons fire above it"
    return {
        "subtract": "subtracts its threshold at a spike, but NIR's neurons are reset to v_reset",
        "none": "is not reset by its spikes, but NIR's neurons are reset to v_reset",
    }.get(facts.reset, "")


def _equal(one: Population, other: Population) -> bool:
    """Return whether the default outputs of two populations respond equally."""
    neurons = math.prod(one.shape)
    for pattern in _PATTERNS:
        oracle = Oracle(pattern)
        first, second = (
            respond(replace(p.model, outputs=p.model.outputs[:1]), p.parameters, oracle, (np.ones(()), np.zeros(())), neurons)
            for p in (one, other)
        )
        if first.kinds != second.kinds or len(first.values) != len(second.values):
            return False
        pairs = [(first.membranes, second.membranes), *zip(first.values.values(), second.values.values(), strict=True)]
        if not all(close(a, b) for ours, theirs in pairs for a, b in zip(ours, theirs, strict=True)):
            return False
    return True


def _from_facts(kind: str, facts: Facts, dt: float, where: str) -> Fields:
    fields = _thresholds(facts.threshold, facts.v_reset)
    if kind in ("I", "IF"):
        if np.any(facts.drive):
            raise NotInNirError(
                f"{where} adds a constant at every step, but NIR's {kind} has no leak. Put it into the bias of the preceding layer."
            )
        return {"r": facts.gain / dt, **fields}
    tau = _tau(facts.decay, dt, where)
    fields["v_leak"] = facts.drive / (1 - facts.decay)
    if facts.syn_decay is None:
        return {"tau": tau, "r": facts.gain * tau / dt, **fields}
    tau_syn = _tau(facts.syn_decay, dt, where)
    return {"tau_mem": tau, "tau_syn": tau_syn, "w_in": facts.gain * tau_syn / dt, "r": tau / dt, **fields}


def _spread(value: Any, population: Population) -> Array:
    array = np.asarray(value, np.float64)
    return array.reshape(()) if array.size == 1 else array.reshape(population.shape)
