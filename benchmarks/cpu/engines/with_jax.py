"""JAX: lax.scan over time under jit, with donated buffers; the products of the inputs of all steps are computed before the loop."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from snnc.benchmarks.cpu.engine import LOSS_SCALE, SHORT
from snnc.benchmarks.cpu.problem import TrainingStepProblem
from snnc.benchmarks.cpu.workloads import BETA, LEARNING_RATE, SLOPE, THRESHOLD, ConvLayer, Workload
from snnc.compiler.ir.graph import Array

VERSIONS = ("jax", "jaxlib")
UNROLL = 5
"""Number of time steps in one iteration of the loop, in the variant "unrolled"."""
_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8
Weights = dict[str, jax.Array]


def load() -> None:
    """Start XLA and compile a small function."""
    jax.block_until_ready(jax.jit(jnp.sum)(jnp.zeros(1)))


def _step_function(x: jax.Array) -> jax.Array:
    return (x > 0).astype(x.dtype)


def _spike_backward(x: jax.Array, gradient: jax.Array) -> tuple[jax.Array]:
    return (gradient / jnp.square(1 + SLOPE * jnp.abs(x)),)


_spike = jax.custom_vjp(_step_function)
_spike.defvjp(lambda x: (_step_function(x), x), _spike_backward)


def product(rows: jax.Array, weight: jax.Array, short: str | None) -> jax.Array:
    """Return rows [..., in] times weight [out, in] as float32.

    `short` names the 16-bit format of the factors and results, also in the backward pass; None: float32.
    """
    if short is None:
        return rows @ weight.T
    return (rows.astype(short) @ weight.astype(short).T).astype(jnp.float32)


def _convolved(spikes: jax.Array, layer: ConvLayer, weight: jax.Array, bias: jax.Array, short: str | None) -> jax.Array:
    steps, batch = spikes.shape[:2]
    flat = spikes.reshape(steps * batch, *spikes.shape[2:])
    if short is not None:
        flat, weight = flat.astype(short), weight.astype(short)
    maps = lax.conv(flat, weight, (1, 1), "VALID").astype(jnp.float32) + bias[:, None, None]
    window = (1, 1, layer.pool, layer.pool)
    pooled = lax.reduce_window(maps, -jnp.inf, lax.max, window, window, "VALID")
    return pooled.reshape(steps, batch, *pooled.shape[1:])


def _adam(
    weights: Weights, gradients: Weights, moments: tuple[Weights, Weights], count: jax.Array
) -> tuple[Weights, tuple[Weights, Weights]]:
    """Return weights and moments after a step of Adam (Kingma & Ba, arXiv 1412.6980, algorithm 1)."""
    first = jax.tree.map(lambda m, g: _BETA1 * m + (1 - _BETA1) * g, moments[0], gradients)
    second = jax.tree.map(lambda v, g: _BETA2 * v + (1 - _BETA2) * g * g, moments[1], gradients)
    rate, root = LEARNING_RATE / (1 - _BETA1**count), jnp.sqrt(1 - _BETA2**count)
    changed = jax.tree.map(lambda w, m, v: w - rate * m / (jnp.sqrt(v) / root + _EPSILON), weights, first, second)
    return changed, (first, second)


class JaxEngine:
    """See :class:`~snnc.benchmarks.cpu.engine.BenchmarkEngine`."""

    def __init__(self, problem: TrainingStepProblem, mode: str, variant: str, device: str = "cpu") -> None:
        workload = problem.workload
        self._unroll = UNROLL if variant == "unrolled" else 1
        self.short, scale = mode if mode in SHORT else None, LOSS_SCALE.get(mode, 1.0)
        self._x, self._y = jnp.asarray(problem.x), jnp.asarray(problem.y)
        self._start = {name: np.asarray(value) for name, value in problem.weights.items()}
        self._weights: Weights = {name: jnp.array(value) for name, value in self._start.items()}
        self._moments = (jax.tree.map(jnp.zeros_like, self._weights), jax.tree.map(jnp.zeros_like, self._weights))
        self._count = jnp.zeros((), jnp.float32)
        self._gradients: Weights = {}

        def train(weights: Weights, moments: Any, count: jax.Array, x: jax.Array, y: jax.Array) -> Any:
            loss, gradients = jax.value_and_grad(lambda *arguments: scale * self._loss(*arguments))(weights, x, y, workload)
            if scale != 1.0:
                loss, gradients = jax.tree.map(lambda value: value / scale, (loss, gradients))
            changed, moments = _adam(weights, gradients, moments, count + 1)
            return loss, gradients, changed, moments, count + 1

        self._train = jax.jit(train, donate_argnums=(0, 1, 2))

    def hidden(self, currents: jax.Array, recurrent: jax.Array | None) -> jax.Array:
        """Return the spikes of a layer from its currents, both [T, B, ...]."""

        def step(state: tuple[jax.Array, jax.Array], current: jax.Array) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
            v, s = state
            total = current if recurrent is None else current + product(s, recurrent, self.short)
            v = BETA * v * (1 - lax.stop_gradient(s)) + total
            s = _spike(v - THRESHOLD)
            return (v, s), s

        start = jnp.zeros_like(currents[0])
        spikes: jax.Array = lax.scan(step, (start, start), currents, unroll=self._unroll)[1]
        return spikes

    def readout(self, currents: jax.Array) -> jax.Array:
        """Return the mean membrane [B, classes] of the leaky readout."""

        def step(state: tuple[jax.Array, jax.Array], current: jax.Array) -> tuple[tuple[jax.Array, jax.Array], None]:
            m, total = state
            m = BETA * m + current
            return (m, total + m), None

        start = jnp.zeros_like(currents[0])
        total: jax.Array = lax.scan(step, (start, start), currents, unroll=self._unroll)[0][1]
        return total / len(currents)

    def _loss(self, weights: Weights, x: jax.Array, y: jax.Array, workload: Workload) -> jax.Array:
        spikes, steps, batch = x, x.shape[0], x.shape[1]
        for n, layer in enumerate(workload.layers, 1):
            weight, bias = weights[f"hidden{n}.weight"], weights[f"hidden{n}.bias"]
            if isinstance(layer, ConvLayer):
                currents = _convolved(spikes, layer, weight, bias, self.short)
            else:
                currents = product(spikes.reshape(steps, batch, -1), weight, self.short) + bias
            spikes = self.hidden(currents, weights.get(f"hidden{n}.recurrent"))
        if workload.classes:
            sums = product(spikes.reshape(steps, batch, -1), weights["readout.weight"], self.short)
            outputs = self.readout(sums + weights["readout.bias"])
        else:
            outputs = spikes.sum(0)
        return -jnp.mean(jax.nn.log_softmax(outputs)[jnp.arange(batch), y])

    def step(self) -> float:
        results = self._train(self._weights, self._moments, self._count, self._x, self._y)
        loss, self._gradients, self._weights, self._moments, self._count = jax.block_until_ready(results)
        return float(loss)

    def gradients(self) -> dict[str, Array]:
        return {name: np.array(value) for name, value in self._gradients.items()}

    def weights(self) -> dict[str, Array]:
        return {name: np.array(value) for name, value in self._weights.items()}

    def reset(self) -> None:
        self._weights = {name: jnp.array(value) for name, value in self._start.items()}


ENGINE = JaxEngine
