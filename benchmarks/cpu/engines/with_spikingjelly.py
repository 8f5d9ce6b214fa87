"""SpikingJelly: LIFNode in multi-step mode without recurrence, else step by step.

Its built-in surrogates run in its own operators; user-defined surrogates do not. SuperSpike is alpha / (1 + |x|)^2: with membrane
potentials in units of 1/25 and alpha = 1/25 it is exactly the surrogate of the benchmark's neuron.
"""

from __future__ import annotations

import torch
from spikingjelly.activation_based import functional, surrogate
from spikingjelly.activation_based.neuron import LIFNode, NonSpikingLIFNode

from snnc.benchmarks.cpu.engines.torch_steps import Hidden, Readout, TorchEngine, Wrap, load, with_recurrence
from snnc.benchmarks.cpu.workloads import BETA, SLOPE, THRESHOLD

__all__ = ["ENGINE", "VERSIONS", "load"]

VERSIONS = ("spikingjelly", "torch")
_TAU = 1 / (1 - BETA)


class SpikingJellyEngine(TorchEngine):
    """See :class:`~snnc.benchmarks.cpu.engine.BenchmarkEngine`."""

    scale = SLOPE
    readout_scale = _TAU

    def neurons(self, wrap: Wrap) -> tuple[Hidden, Readout]:
        """See :class:`~snnc.benchmarks.cpu.engines.torch_steps.TorchEngine`."""
        surrogate_function = surrogate.SuperSpike(alpha=1 / SLOPE)
        options = {"tau": _TAU, "decay_input": False, "v_threshold": SLOPE * THRESHOLD, "v_reset": 0.0, "detach_reset": True}
        self._nodes = LIFNode(**options, surrogate_function=surrogate_function, step_mode="m")
        integrators, scale = NonSpikingLIFNode(tau=_TAU), self.loop_scale

        def lif(
            currents: torch.Tensor, v: torch.Tensor, s: torch.Tensor, recurrent: torch.Tensor | None
        ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
            found = []
            for current in currents.unbind(0):
                total = with_recurrence(current, s, recurrent, scale)
                s, v = functional.lif_step(total, v, surrogate_function=surrogate_function, **options)
                found.append(s)
            return torch.stack(found), v, s

        def li(currents: torch.Tensor, m: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            integrators.v, found = m, []
            for current in currents.unbind(0):
                integrators.neuronal_charge(current)
                found.append(integrators.v)
            return torch.stack(found).sum(0), integrators.v

        return wrap(lif), wrap(li)

    def hidden(self, currents: torch.Tensor, recurrent: torch.Tensor | None) -> torch.Tensor:
        """Use multi-step mode without recurrence, unless the loop over the steps is compiled, which may be faster on a CPU."""
        if recurrent is not None or self.compiled:
            return super().hidden(currents, recurrent)
        functional.reset_net(self._nodes)
        spikes: torch.Tensor = self._nodes(currents)
        return spikes


ENGINE = SpikingJellyEngine
