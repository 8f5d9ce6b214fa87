"""Convert NIR's neurons to populations whose equations are one forward-Euler step.

A neuron whose current has gain 1 and whose v_leak is 0 gets the equations of snnc's library (for LIF, ``v = beta*v + i`` with
``beta = 1 - dt/tau``); others keep those of the NIR standard (for LIF, ``v = v + (dt/tau)*((v_leak - v) + r*i)``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from snnc.compiler.ir.graph import Array, Population, Shape
from snnc.compiler.neurons.library import IF, LI, LIF, CubaLIF, I, Threshold
from snnc.compiler.neurons.library.resets import Firing
from snnc.compiler.neurons.neuron import NeuronModel, neuron
from snnc.frontends.nir.dialects import Dialect
from snnc.frontends.nir.reading.fields import FIRING, NirNode

_ROUNDING: Final = 2e-6
"""Relative error up to which a gain counts as 1; gains are quotients of float32 numbers."""


@dataclass(frozen=True, eq=False)
class _InterpretedFields:
    """Fields of a node in float64, interpreted by the conventions of a dialect."""

    node: NirNode
    dt: float
    dialect: Dialect

    def value(self, name: str) -> Array:
        """Return a field; if the node lacks it, 1 for ``w_in`` and 0 for others."""
        if self.dialect.unit_gain and name in ("r", "w_in"):
            return self._unit(name)
        default = np.asarray(1.0 if name == "w_in" else 0.0)
        return np.asarray(self.node.fields.get(name, default), np.float64)

    @property
    def firing(self) -> Firing:
        if self.dialect.reset == "subtract":
            return Firing("subtract", True, strict=self.dialect.strict)
        return Firing("value" if self.value("v_reset").any() else "zero", False, strict=self.dialect.strict)

    def start(self) -> Array:
        if self.dialect.start == "zero":
            return np.zeros(())
        return self.value("v_leak" if self.dialect.start == "leak" and "v_leak" in self.node.fields else "v_reset")

    def thresholds(self) -> dict[str, Array]:
        """Return the threshold and, if spikes reset the membrane potential to a value other than 0, v_reset; {} if neurons do not fire."""
        if self.node.type not in FIRING:
            return {}
        values = {"threshold": self.value("v_threshold")}
        return values | {"v_reset": self.value("v_reset")} if self.firing.reset == "value" else values

    def decays(self) -> dict[str, Array | float]:
        """Return the decay factors per step, named as in the library's neurons."""
        names = {"LI": {"beta": "tau"}, "CubaLI": {"alpha": "tau_syn", "beta": "tau_mem"}}.get(self.node.type.removesuffix("F"), {})
        return {factor: 1 - self.dt / self.value(tau) for factor, tau in names.items()}

    def fits_library(self) -> bool:
        """Return whether the equations of the library apply: the current enters with gain 1, and the membrane leaks towards 0."""
        return not self.value("v_leak").any() and all(bool(np.all(np.abs(gain - 1) < _ROUNDING)) for gain in self._gains())

    def _unit(self, name: str) -> Array:
        """Return the value of r or w_in with which a current enters with gain 1."""
        tau = {"r": {"I": None, "LI": "tau", "CubaLI": "tau_mem"}[self.node.type.removesuffix("F")], "w_in": "tau_syn"}[name]
        return np.asarray((1.0 if tau is None else self.value(tau)) / self.dt)

    def _gains(self) -> tuple[Array, ...]:
        match self.node.type:
            case "I" | "IF":
                return (self.value("r") * self.step(),)
            case "LI" | "LIF":
                return (self.value("r") * (self.dt / self.value("tau")),)
            case _:
                tau_syn, tau_mem = self.value("tau_syn"), self.value("tau_mem")
                jump = self.value("w_in") if self.dialect.plain_synapse else self.value("w_in") * (self.dt / tau_syn)
                return jump, self.value("r") * (self.dt / tau_mem)

    def step(self) -> float:
        """Return ``dt`` in the equations of neurons without time constants: seconds per step, or 1 if the dialect disregards dt."""
        return 1.0 if self.dialect.plain_if else self.dt


def population(node: NirNode, shape: Shape, dt: float, dialect: Dialect) -> Population:
    """Return the population of `shape` for `node`, a neuron or a Threshold whose fields contain one value, or one per neuron.

    `dt` is in seconds per step, and the conventions of `dialect` apply.
    """
    fields = _InterpretedFields(node, dt, dialect)
    model, values = _neuron(fields)
    parameters = {name: _array(values[name], shape) for name in model.parameters}
    start = fields.start() if "v" in model.states else np.zeros(())
    return Population(model, shape, parameters, initial={"v": _array(start, shape)} if start.any() else {})


def _array(value: Array | float, shape: Shape) -> Array:
    array = np.asarray(value, np.float64).astype(np.float32)
    if array.size == 1 or (array == array.flat[0]).all():
        return np.asarray(array.reshape(-1)[0])
    return array.reshape(shape)


CUBA_LI: Final = neuron(
    "CubaLI",
    states={"syn": 0.0, "v": 0.0},
    params={"alpha": 0.9, "beta": 0.9},
    equations="syn = alpha*syn + i\nv = beta*v + syn",
    output="v",
)
"""Leaky integrator with a synaptic current, with gain 1 and v_leak 0."""
SYNAPSE: Final = "syn = syn + (dt/tau_syn)*(w_in*i - syn)"
"""Synaptic current of the standard."""
PLAIN_SYNAPSE: Final = "syn = syn - (dt/tau_syn)*syn + w_in*i"
"""Synaptic current to which each step adds ``w_in*i``, regardless of dt."""
UPDATES: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "I": ("{v} + dt*r*i", ("dt", "r")),
    "LI": ("{v} + (dt/tau)*((v_leak - {v}) + r*i)", ("dt", "tau", "v_leak", "r")),
    "CubaLI": ("{v} + (dt/tau_mem)*((v_leak - {v}) + r*syn)", ("dt", "tau_syn", "w_in", "tau_mem", "v_leak", "r")),
}
"""Update of the membrane potential, and names of the neuron's parameters, by type of integrator. The spiking types, whose names end with
an additional F, have the same update."""
_ZERO: Final = ("v_leak", "v_reset")
"""Parameters that are 0 by default; all others are 1."""


def standard(kind: str, firing: Firing | None, synapse: str = SYNAPSE) -> NeuronModel:
    """Return a NIR neuron with the equations of the standard, with a reset if it fires."""
    update, names = UPDATES[kind.removesuffix("F") if firing else kind]
    body = f"v = {update.format(v='v')}" if firing is None else _firing(update, firing)
    current = f"{synapse}\n" if "tau_syn" in names else ""
    return neuron(
        kind,
        states={"syn": 0.0, "v": 0.0} if current else {"v": 0.0},
        params={name: float(name not in _ZERO) for name in (*names, *(firing.parameters if firing else ()))},
        equations=current + body,
        output="v" if firing is None else "s",
    )


def _firing(update: str, firing: Firing) -> str:
    """Return the equations of a spiking neuron.

    Equations with a delayed reset are written here, because :meth:`Firing.equations` calls the previous spike ``r``, which is the
    resistance in NIR.
    """
    if not firing.reset_delay:
        return firing.equations(lambda v: update.format(v=v))
    return f"z = detach({firing.spike()})\nv = {update.format(v='v')} - z*threshold\ns = {firing.spike()}"


def library(kind: str, firing: Firing | None) -> NeuronModel:
    """Return the library neuron (for CubaLI, :data:`CUBA_LI`) for a NIR neuron with gain 1 and v_leak 0."""
    if firing is None:
        return {"I": I(), "LI": LI(), "CubaLI": CUBA_LI}[kind]
    make: Callable[..., NeuronModel] = {"IF": IF, "LIF": LIF, "CubaLIF": CubaLIF}[kind]  # type: ignore[assignment]
    return make(reset=firing.reset, reset_delay=firing.reset_delay, detach=firing.detach, strict=firing.strict)


def _neuron(fields: _InterpretedFields) -> tuple[NeuronModel, Mapping[str, Array | float]]:
    kind = fields.node.type
    if kind == "Threshold":
        return Threshold(strict=fields.dialect.strict), {"threshold": fields.value("threshold")}
    firing = fields.firing if kind in FIRING else None
    if fields.fits_library():
        return library(kind, firing), {**fields.decays(), **fields.thresholds()}
    model = standard(kind, firing, PLAIN_SYNAPSE if fields.dialect.plain_synapse else SYNAPSE)
    values: dict[str, Array | float] = {"dt": fields.step() if kind in ("I", "IF") else fields.dt, **fields.thresholds()}
    return model, values | {name: fields.value(name) for name in model.parameters if name not in values}
