"""The function of each NIR node in one forward-Euler step, in float64, following the equations of the standard."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from snnc.compiler.ir.graph import Array, Shape
from snnc.frontends.nir.errors import NirDialectError
from snnc.frontends.nir.interpreter.shapes import Window, leaving_shape
from snnc.frontends.nir.reading.fields import FIRING, NirNode

Function: TypeAlias = Callable[[Array], Array]


@dataclass(frozen=True)
class Conventions:
    """Conventions of a framework for its files; the defaults are those of the standard."""

    dt: float = 1e-4  # default seconds per step
    at_threshold: bool = False  # whether neurons fire at their threshold, and not only above it
    subtracts_later: bool = False  # whether a spike subtracts the threshold in the next step
    late_spikes: bool = False  # whether other nodes read a spike one step late
    unscaled_currents: bool = False  # whether currents enter unscaled, regardless of dt, r and w_in
    unscaled_jumps: bool = False  # whether I and IF add ``r*i`` per step, and synapses ``w_in*i``, regardless of dt
    bypass_weights: bool = False  # whether the input of a nested recurrent graph bypasses the recurrent weights
    starts_at: tuple[str, ...] = ()  # fields with the initial membrane potential, in order of preference; 0 if a node has none


_CONVENTIONS: Final[Mapping[str, Conventions]] = {
    "nir": Conventions(),
    "snntorch": Conventions(subtracts_later=True),
    "norse": Conventions(dt=1e-6, unscaled_jumps=True, starts_at=("v_leak", "v_reset")),
    "spikingjelly": Conventions(at_threshold=True, starts_at=("v_reset",)),
    "spyx": Conventions(dt=1.0, subtracts_later=True, late_spikes=True, unscaled_currents=True, bypass_weights=True),
}


def conventions_of(dialect: str) -> Conventions:
    """Return the conventions of `dialect`; an unknown dialect raises a NirDialectError."""
    if dialect not in _CONVENTIONS:
        raise NirDialectError(f"the dialect {dialect[:60]!r} is unknown.")
    return _CONVENTIONS[dialect]


def function(node: NirNode, shape: Shape, conventions: Conventions) -> Function:
    """Return the function that a stateless node applies to values [B, *shape]."""
    fields = {name: np.asarray(value, np.float64) for name, value in node.fields.items()}
    match node.type:
        case "Linear":
            return lambda x: x @ fields["weight"].T
        case "Affine":
            return lambda x: x @ fields["weight"].T + fields["bias"]
        case "Scale":
            scale = spread(fields["scale"], shape)
            return lambda x: x * scale
        case "Threshold":
            threshold = spread(fields["threshold"], shape)
            return lambda x: fires(x - threshold, conventions)
        case "Flatten":
            after = leaving_shape(node, shape)
            return lambda x: x.reshape(len(x), *after)
        case "Conv1d" | "Conv2d":
            return _convolution(fields["weight"], fields["bias"], int(fields["groups"].reshape(-1)[0]), Window(node))
        case "SumPool2d":
            window = Window(node)
            return lambda x: window.windows_of(x).sum((-2, -1))
        case "AvgPool2d":
            window = Window(node)
            return lambda x: window.windows_of(x).sum((-2, -1)) / math.prod(window.kernel)
        case _:
            return lambda x: x


def _convolution(weight: Array, bias: Array, groups: int, window: Window) -> Function:
    kernels = weight.reshape(groups, weight.shape[0] // groups, -1)

    def convolve(x: Array) -> Array:
        windows = window.windows_of(x)
        positions = windows.shape[2 : 2 + len(window.kernel)]
        columns = np.moveaxis(windows.reshape(len(x), groups, -1, *windows.shape[2:]), 2, -1 - len(window.kernel))
        columns = columns.reshape(len(x), groups, math.prod(positions), -1)
        sums: Array = np.einsum("bgpk,gok->bgop", columns, kernels)
        return sums.reshape(len(x), weight.shape[0], *positions) + bias.reshape(-1, *(1,) * len(positions))

    return convolve


def fires(above: Array, conventions: Conventions) -> Array:
    """Return 1 where a neuron fires; `above` is the membrane potential minus the threshold."""
    return (above >= 0 if conventions.at_threshold else above > 0).astype(np.float64)


def spread(value: Array, shape: Shape) -> Array:
    """Return `value` with one entry per neuron; a single value applies to all."""
    if value.size == 1:
        return np.full(shape, value.reshape(-1)[0], np.float64)
    return np.asarray(value.reshape(shape), np.float64)


class NirNeuron:
    """A neuron node (I, IF, LI, LIF, CubaLI or CubaLIF) and its state.

    The state is membrane potentials [B, *shape] and, for CubaLI and CubaLIF, synaptic currents, which start at 0. `shape` is that of the
    neurons in one sample, and `dt` is in seconds per step.
    """

    def __init__(self, node: NirNode, shape: Shape, batch: int, dt: float, conventions: Conventions) -> None:
        stored = {name: np.asarray(value, np.float64) for name, value in node.fields.items()}
        defaults = {"v_reset": np.zeros(()), "w_in": np.ones(())}
        self.fields: Mapping[str, Array] = {name: spread(value, shape) for name, value in {**defaults, **stored}.items()}
        self.spikes, self.dt, self.conventions = node.type in FIRING, dt, conventions
        start = next((self.fields[name] for name in conventions.starts_at if name in stored), np.zeros(shape))
        self.states = {"v": np.tile(start, (batch, *(1,) * len(shape)))}
        if node.type.startswith("Cuba"):
            self.states["syn"] = np.zeros((batch, *shape))
        self.margin = np.full((batch, *shape), np.inf)  # membrane potential minus threshold in the last step, before a reset

    def __call__(self, current: Array) -> Array:
        """Run one step and return the neuron's output."""
        if "syn" in self.states:
            current = self.states["syn"] = self._synapse(self.states["syn"], current)
        v = self.states["v"]
        after = v + self._change(v, current)
        if not self.spikes:
            self.states["v"] = after
            return after
        threshold = self.fields["v_threshold"]
        if self.conventions.subtracts_later:
            after = after - fires(v - threshold, self.conventions) * threshold
        self.margin = after - threshold
        spikes = fires(self.margin, self.conventions)
        self.states["v"] = after if self.conventions.subtracts_later else np.where(spikes > 0, self.fields["v_reset"], after)
        return spikes

    def _synapse(self, syn: Array, current: Array) -> Array:
        rate = self.dt / self.fields["tau_syn"]
        if self.conventions.unscaled_currents:
            return np.asarray(syn - rate * syn + current)
        if self.conventions.unscaled_jumps:
            return np.asarray(syn - rate * syn + self.fields["w_in"] * current)
        return np.asarray(syn + rate * (-syn + self.fields["w_in"] * current))

    def _change(self, v: Array, current: Array) -> Array:
        driven = self.fields["r"] * current
        tau = self.fields.get("tau", self.fields.get("tau_mem"))
        if tau is None:
            return current if self.conventions.unscaled_currents else driven if self.conventions.unscaled_jumps else self.dt * driven
        rate = self.dt / tau
        leak = self.fields["v_leak"] - v
        return np.asarray(rate * leak + current if self.conventions.unscaled_currents else rate * (leak + driven))
