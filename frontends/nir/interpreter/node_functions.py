"""Computation of each NIR node in one forward-Euler step, in float64, following the equations of the standard."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from snnc.compiler.ir.graph import Array, Shape
from snnc.frontends.nir.errors import NirDialectError, NirSimulationError
from snnc.frontends.nir.interpreter.wired_graph import SPIKING, fields_shape
from snnc.frontends.nir.reading.fields import NirNode

Function: TypeAlias = Callable[[Array], Array]


@dataclass(frozen=True)
class Conventions:
    """Conventions of a framework for its files; the defaults are those of the standard.

    Parameters
    ----------
    dt
        Default seconds per step.
    at_threshold
        Whether neurons fire at their threshold, and not only above it.
    subtracts_later
        Whether a spike subtracts the threshold from the membrane in the next step.
    late_spikes
        Whether other nodes read a spike one step late.
    unscaled_currents
        Whether currents enter unscaled, regardless of dt, r and w_in.
    unscaled_jumps
        Whether neurons without time constants add ``r*i`` per step, and synapses ``w_in*i``, regardless of dt.
    starts_at
        Fields with the initial membrane, in order of preference; 0 if a node has none of them.
    bypass_weights
        Whether the input of a nested recurrent graph bypasses the recurrent weights.
    """

    dt: float = 1e-4
    at_threshold: bool = False
    subtracts_later: bool = False
    late_spikes: bool = False
    unscaled_currents: bool = False
    unscaled_jumps: bool = False
    bypass_weights: bool = False
    starts_at: tuple[str, ...] = ()


def conventions_of(dialect: str) -> Conventions:
    """Return the conventions of `dialect`.

    Raises
    ------
    NirDialectError
        The dialect is unknown.
    """
    match dialect:
        case "nir":
            return Conventions()
        case "snntorch":
            return Conventions(subtracts_later=True)
        case "norse":
            return Conventions(dt=1e-6, unscaled_jumps=True, starts_at=("v_leak", "v_reset"))
        case "spikingjelly":
            return Conventions(at_threshold=True, starts_at=("v_reset",))
        case "spyx":
            return Conventions(dt=1.0, subtracts_later=True, late_spikes=True, unscaled_currents=True, bypass_weights=True)
        case _:
            raise NirDialectError(f"the dialect {dialect[:60]!r} is unknown.")


# ---- shapes -----------------------------------------------------------------------------------------------------------

_WINDOWS: Final = {"Conv1d": 1, "Conv2d": 2, "SumPool2d": 2, "AvgPool2d": 2}


def declared_shape(node: NirNode) -> Shape | None:
    """Return the only shape that `node` can read; None if it accepts any."""
    if node.type in ("Linear", "Affine"):
        return (node.fields["weight"].shape[1],)
    if node.type == "Input" and "shape" in node.fields:
        return tuple(int(n) for n in node.fields["shape"].reshape(-1))
    return None


def readable_shape(node: NirNode, given: Shape) -> Shape | None:
    """Return the last axes of `given` that `node` reads; None if its fields do not determine them."""
    if node.type in ("Linear", "Affine"):
        wanted: Shape | None = declared_shape(node)
    elif node.type in ("Conv1d", "Conv2d"):
        channels = node.fields["weight"].shape[1] * int(node.fields["groups"].reshape(-1)[0])
        wanted = (channels, *given[len(given) - _WINDOWS[node.type] :])
    else:
        wanted = fields_shape(node) or None
    return wanted if wanted and given[len(given) - len(wanted) :] == wanted else None


def leaving_shape(node: NirNode, shape: Shape) -> Shape:
    """Return the output shape of `node` for the input shape `shape`.

    Raises
    ------
    NirSimulationError
        No window fits.
    """
    if node.type in ("Linear", "Affine"):
        return (node.fields["weight"].shape[0],)
    if node.type == "Flatten":
        first, last = _joined(node, len(shape))
        return (*shape[:first], math.prod(shape[first : last + 1]), *shape[last + 1 :])
    if node.type not in _WINDOWS:
        return shape
    window = _Window(node)
    if len(shape) != len(window.kernel) + 1:
        raise NirSimulationError(f"{node.path!r} ({node.type}) reads {list(shape)} instead of channels and {len(window.kernel)} axes.")
    channels = node.fields["weight"].shape[0] if "weight" in node.fields else shape[0]
    sizes = [
        (size + sum(pad) - dilation * (kernel - 1) - 1) // stride + 1
        for size, pad, dilation, kernel, stride in zip(
            shape[1:], window.padding, window.dilation, window.kernel, window.stride, strict=True
        )
    ]
    if min(sizes) < 1:
        raise NirSimulationError(f"no window of {node.path!r} ({node.type}) fits into {list(shape)}.")
    return (channels, *sizes)


def _joined(node: NirNode, axes: int) -> tuple[int, int]:
    """Return the first and last axis joined by a Flatten, counted within one sample."""
    if axes < 2:
        return 0, 0
    first, last = (int(node.fields[f].reshape(-1)[0]) % axes for f in ("start_dim", "end_dim"))
    return first, last


class _Window:
    """Settings of a convolution or pooling, one value per axis."""

    def __init__(self, node: NirNode) -> None:
        axes = _WINDOWS[node.type]
        weight = node.fields.get("weight")

        def numbers(name: str) -> tuple[int, ...]:
            values = [int(n) for n in node.fields[name].reshape(-1)] if name in node.fields else [1]
            return tuple(values * axes if len(values) == 1 else values)

        self.kernel = numbers("kernel_size") if weight is None else tuple(weight.shape[2:])
        self.stride, self.dilation = numbers("stride"), numbers("dilation")
        word = node.words.get("padding")
        wanted = [d * (k - 1) if word == "same" else 0 for d, k in zip(self.dilation, self.kernel, strict=True)]
        pairs = [(n // 2, n - n // 2) for n in wanted] if word else [(n, n) for n in numbers("padding")]
        self.padding = tuple(pairs)

    def spans(self) -> tuple[int, ...]:
        """Return the extent of a window on each axis, including dilation."""
        return tuple(d * (k - 1) + 1 for d, k in zip(self.dilation, self.kernel, strict=True))

    def windows_of(self, x: Array) -> Array:
        """Return the windows of [B, C, *axes] as [B, C, *positions, *kernel]."""
        padded = np.pad(x, ((0, 0), (0, 0), *self.padding))
        axes = tuple(range(2, x.ndim))
        seen: Array = sliding_window_view(padded, self.spans(), axis=axes)
        places = tuple(slice(None, None, s) for s in self.stride)
        taps = tuple(slice(None, None, d) for d in self.dilation)
        return seen[(slice(None), slice(None), *places, *taps)]


# ---- nodes without a state --------------------------------------------------------------------------------------------


def function(node: NirNode, shape: Shape, how: Conventions) -> Function:
    """Return the function of a stateless node on [B, *shape]."""
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
            return lambda x: fires(x - threshold, how)
        case "Flatten":
            after = leaving_shape(node, shape)
            return lambda x: x.reshape(len(x), *after)
        case "Conv1d" | "Conv2d":
            return _convolution(fields["weight"], fields["bias"], int(fields["groups"].reshape(-1)[0]), _Window(node))
        case "SumPool2d":
            window = _Window(node)
            return lambda x: window.windows_of(x).sum((-2, -1))
        case "AvgPool2d":
            window = _Window(node)
            return lambda x: window.windows_of(x).sum((-2, -1)) / math.prod(window.kernel)
        case _:
            return lambda x: x


def _convolution(weight: Array, bias: Array, groups: int, window: _Window) -> Function:
    kernels = weight.reshape(groups, weight.shape[0] // groups, -1)

    def convolve(x: Array) -> Array:
        seen = window.windows_of(x)
        places = seen.shape[2 : 2 + len(window.kernel)]
        columns = np.moveaxis(seen.reshape(len(x), groups, -1, *seen.shape[2:]), 2, -1 - len(window.kernel))
        columns = columns.reshape(len(x), groups, math.prod(places), -1)
        found: Array = np.einsum("bgpk,gok->bgop", columns, kernels)
        return found.reshape(len(x), weight.shape[0], *places) + bias.reshape(-1, *(1,) * len(places))

    return convolve


def fires(above: Array, how: Conventions) -> Array:
    """Return 1 where a neuron fires; `above` is membrane minus threshold."""
    return (above >= 0 if how.at_threshold else above > 0).astype(np.float64)


def spread(value: Array, shape: Shape) -> Array:
    """Return `value` with one entry per neuron; a single value applies to all."""
    if value.size == 1:
        return np.full(shape, value.reshape(-1)[0], np.float64)
    return np.asarray(value.reshape(shape), np.float64)


# ---- neurons ----------------------------------------------------------------------------------------------------------


class NirNeuron:
    """State of a neuron node: membranes [B, *shape] and, for the current-based types, synaptic currents, which start at 0.

    Parameters
    ----------
    node
        Node of type I, IF, LI, LIF, CubaLI or CubaLIF.
    shape
        Shape of the neurons in one sample.
    batch
        Number of samples.
    dt
        Seconds per step.
    how
        Conventions of the framework.
    """

    def __init__(self, node: NirNode, shape: Shape, batch: int, dt: float, how: Conventions) -> None:
        given = {name: np.asarray(value, np.float64) for name, value in node.fields.items()}
        defaults = {"v_reset": np.zeros(()), "w_in": np.ones(())}
        self.fields: Mapping[str, Array] = {name: spread(value, shape) for name, value in {**defaults, **given}.items()}
        self.spikes, self.dt, self.how = node.type in SPIKING, dt, how
        start = next((self.fields[name] for name in how.starts_at if name in given), np.zeros(shape))
        self.states = {"v": np.tile(start, (batch, *(1,) * len(shape)))}
        if node.type.startswith("Cuba"):
            self.states["syn"] = np.zeros((batch, *shape))
        self.margin = np.full((batch, *shape), np.inf)

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
        if self.how.subtracts_later:
            after = after - fires(v - threshold, self.how) * threshold
        self.margin = after - threshold
        spikes = fires(self.margin, self.how)
        self.states["v"] = after if self.how.subtracts_later else np.where(spikes > 0, self.fields["v_reset"], after)
        return spikes

    def _synapse(self, syn: Array, current: Array) -> Array:
        rate = self.dt / self.fields["tau_syn"]
        if self.how.unscaled_currents:
            return np.asarray(syn - rate * syn + current)
        if self.how.unscaled_jumps:
            return np.asarray(syn - rate * syn + self.fields["w_in"] * current)
        return np.asarray(syn + rate * (-syn + self.fields["w_in"] * current))

    def _change(self, v: Array, current: Array) -> Array:
        """Return the change of the membrane in one step."""
        driven = self.fields["r"] * current
        tau = self.fields.get("tau", self.fields.get("tau_mem"))
        if tau is None:
            return current if self.how.unscaled_currents else driven if self.how.unscaled_jumps else self.dt * driven
        rate = self.dt / tau
        leak = self.fields["v_leak"] - v
        return np.asarray(rate * leak + current if self.how.unscaled_currents else rate * (leak + driven))
