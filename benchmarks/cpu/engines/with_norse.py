"""Norse, with its functional box neurons, which have no synaptic current, like the benchmark's neurons.

Norse's step is v + 0.1 (i - v) with dt / tau = 0.1, so currents are multiplied by ten. Its SuperSpike derivative is 1 / (1 + |x|)^2
for any `alpha` (norse 1.1, ``torch/functional/superspike.py``), so membrane potentials are in units of 1/25. The derivative with respect
to the current is then 25 times the benchmark's; to undo this, the gradient of the spikes is divided by 25 outside the neuron.
"""

from __future__ import annotations

from typing import Any

import torch
from norse.torch.functional.leaky_integrator_box import LIBoxParameters, LIBoxState, li_box_feed_forward_step
from norse.torch.functional.lif_box import LIFBoxFeedForwardState, LIFBoxParameters, lif_box_feed_forward_step

from snnc.benchmarks.cpu.engines.torch_steps import Hidden, Readout, TorchEngine, Wrap, integrators, load, with_recurrence
from snnc.benchmarks.cpu.workloads import BETA, SLOPE, THRESHOLD

__all__ = ["ENGINE", "VERSIONS", "load"]

VERSIONS = ("norse", "torch")
_RATE = 1 - BETA


class _ScaledGradient(torch.autograd.Function):  # type: ignore[misc]  # torch may be missing
    """Identity whose gradient is divided by the slope."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return gradient / SLOPE


def _detached_reset(z: torch.Tensor, v: torch.Tensor, reset: Any, threshold: Any) -> torch.Tensor:
    return (1 - z.detach()) * v


_LIF = LIFBoxParameters(tau_mem_inv=_RATE, v_leak=0.0, v_th=SLOPE * THRESHOLD, v_reset=0.0, method="super", reset_method=_detached_reset)
_LI = LIBoxParameters(tau_mem_inv=_RATE, v_leak=0.0)


def _li(current: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
    membrane: torch.Tensor = li_box_feed_forward_step(current, LIBoxState(m), _LI, dt=1.0)[0]
    return membrane


class NorseEngine(TorchEngine):
    """See :class:`~snnc.benchmarks.cpu.engine.BenchmarkEngine`."""

    scale = SLOPE / _RATE
    readout_scale = 1 / _RATE

    def neurons(self, wrap: Wrap) -> tuple[Hidden, Readout]:
        scale = self.loop_scale

        def lif(
            currents: torch.Tensor, v: torch.Tensor, s: torch.Tensor, recurrent: torch.Tensor | None
        ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
            state, spikes_of_steps = LIFBoxFeedForwardState(v), []
            for current in currents.unbind(0):
                s, state = lif_box_feed_forward_step(with_recurrence(current, s, recurrent, scale), state, _LIF, dt=1.0)
                if recurrent is not None:
                    s = _ScaledGradient.apply(s)
                spikes_of_steps.append(s)
            spikes = torch.stack(spikes_of_steps)
            return spikes if recurrent is not None else _ScaledGradient.apply(spikes), state.v, s

        return wrap(lif), wrap(integrators(_li))


ENGINE = NorseEngine
