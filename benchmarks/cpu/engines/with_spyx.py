"""Spyx, with its surrogate and its scan over time; the benchmark's neuron is written as one of its stateful layers."""

from __future__ import annotations

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


class SpyxEngine(with_jax.JaxEngine):
    """See :class:`~snnc.benchmarks.cpu.engine.BenchmarkEngine`."""

    def hidden(self, currents: jax.Array, recurrent: jax.Array | None) -> jax.Array:
        def reset_to_zero(x: jax.Array, state: State) -> tuple[jax.Array, State]:
            """Compute a step of LIF neurons that reset to zero; ``spyx.nn.LIF`` subtracts the threshold and spikes a step later."""
            v, s = state
            total = x if recurrent is None else x + with_jax.product(s, recurrent, self.short)
            v = BETA * v * (1 - lax.stop_gradient(s)) + total
            s = _spike(v - THRESHOLD)
            return s, (v, s)

        start = jnp.zeros_like(currents[0])
        spikes: jax.Array = run(reset_to_zero, currents, (start, start))[0]
        return spikes

    def readout(self, currents: jax.Array) -> jax.Array:
        def summed(x: jax.Array, state: State) -> tuple[None, State]:
            """Compute a step of ``spyx.nn.LI`` with a running sum of its membrane potential, so that no sequence is stored."""
            m, total = state
            m = BETA * m + x
            return None, (m, total + m)

        start = jnp.zeros_like(currents[0])
        total: jax.Array = run(summed, currents, (start, start))[1][1]
        return total / len(currents)


ENGINE = SpyxEngine
