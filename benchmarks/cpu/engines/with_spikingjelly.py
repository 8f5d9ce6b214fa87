"""SpikingJelly: layers run in multi-step mode (LIFNode); recurrent layers, and all layers in compiled variants, run step by step.

Only its built-in surrogates run in its own operators, so one of them is used: SuperSpike, alpha / (1 + |x|)^2. With membrane potentials
in units of 1/25 and alpha = 1/25, it is exactly the surrogate of the benchmark's neuron.
"""

from __future__ import annotations

import torch
from spikingjelly.activation_based import functional, surrogate
from spikingjelly.activation_based.neuron import LIFNode, NonSpikingLIFNode

from snnc.benchmarks.cpu.engines.torch_steps import Hidden, Readout, TorchEngine, Wrap, integrators, load, spiking
from snnc.benchmarks.cpu.workloads import BETA, SLOPE, THRESHOLD

__all__ = ["ENGINE", "VERSIONS", "load"]

VERSIONS = ("spikingjelly", "torch")
_TAU = 1 / (1 - BETA)


class SpikingJellyEngine(TorchEngine):
    """See :class:`~snnc.benchmarks.cpu.engine.BenchmarkEngine`."""

    scale = SLOPE
    readout_scale = _TAU

    def neurons(self, wrap: Wrap) -> tuple[Hidden, Readout]:
        surrogate_function = surrogate.SuperSpike(alpha=1 / SLOPE)
        options = {"tau": _TAU, "decay_input": False, "v_threshold": SLOPE * THRESHOLD, "v_reset": 0.0, "detach_reset": True}
        self._nodes = LIFNode(**options, surrogate_function=surrogate_function, step_mode="m")
        leaky = NonSpikingLIFNode(tau=_TAU)

        def lif(current: torch.Tensor, v: torch.Tensor, _: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            s_and_v: tuple[torch.Tensor, torch.Tensor] = functional.lif_step(current, v, surrogate_function=surrogate_function, **options)
            return s_and_v

        def li(current: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
            leaky.v = m
            leaky.neuronal_charge(current)
            return leaky.v

        return wrap(spiking(lif, self.loop_scale)), wrap(integrators(li))

    def hidden(self, currents: torch.Tensor, recurrent: torch.Tensor | None) -> torch.Tensor:
        """Use multi-step mode without recurrence, unless the loop over the steps is compiled, which may be faster on a CPU."""
        if recurrent is not None or self.compiled:
            return super().hidden(currents, recurrent)
        functional.reset_net(self._nodes)
        spikes: torch.Tensor = self._nodes(currents)
        return spikes


ENGINE = SpikingJellyEngine
