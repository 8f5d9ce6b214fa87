"""Spyx, with its surrogate and its scan over time; the benchmark's neuron is written as one of its stateful layers."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import lax
from spyx.axn import superspike
from spyx.nn import run

from snnc.benchmarks.cpu.engines import with_jax
from snnc.benchmarks.cpu.engines.with_jax import load
from snnc.benchmarks.cpu.workloads import BETA, SLOPE, THRESHOLD

__all__ = ["ENGINE", "VERSIONS", "load"]

VERSIONS = ("spyx", "jax", "jaxlib")
_spike = superspike(SLOPE)
State = tuple[jax.Array, jax.Array]


@dataclass(frozen=True)
class _ResetToZero:
    """A LIF neuron that resets to zero; ``spyx.nn.LIF`` subtracts the threshold and spikes a step later."""

    recurrent: jax.Array | None
    short: str | None

    def __call__(self, x: jax.Array, state: State) -> tuple[jax.Array, State]:
        v, s = state
        total = x if self.recurrent is None else x + with_jax.product(s, self.recurrent, self.short)
        v = BETA * v * (1 - lax.stop_gradient(s)) + total
        s = _spike(v - THRESHOLD)
        return s, (v, s)


@dataclass(frozen=True)
class _Summed:
    """``spyx.nn.LI`` with a running sum of its membrane potential, so that no sequence is stored."""

    def __call__(self, x: jax.Array, state: State) -> tuple[None, State]:
        m, total = state
        m = BETA * m + x
        return None, (m, total + m)


class SpyxEngine(with_jax.JaxEngine):
    """See :class:`~snnc.benchmarks.cpu.engine.BenchmarkEngine`."""

    def hidden(self, currents: jax.Array, recurrent: jax.Array | None) -> jax.Array:
        start = jnp.zeros_like(currents[0])
        spikes: jax.Array = run(_ResetToZero(recurrent, self.short), currents, (start, start))[0]
        return spikes

    def readout(self, currents: jax.Array) -> jax.Array:
        start = jnp.zeros_like(currents[0])
        total: jax.Array = run(_Summed(), currents, (start, start))[1][1]
        return total / len(currents)


ENGINE = SpyxEngine
