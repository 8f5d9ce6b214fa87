"""snnTorch: its Leaky neurons; the products of the inputs of all steps are computed before the loop."""

from __future__ import annotations

from typing import Any

import snntorch
import torch
from snntorch import surrogate

from snnc.benchmarks.cpu.engines.torch_steps import Hidden, Readout, TorchEngine, Wrap, load, with_recurrence
from snnc.benchmarks.cpu.workloads import BETA, SLOPE, THRESHOLD

__all__ = ["ENGINE", "VERSIONS", "load"]

VERSIONS = ("snntorch", "torch")


class SnnTorchEngine(TorchEngine):
    """See :class:`~snnc.benchmarks.cpu.engine.BenchmarkEngine`; ``RLeaky`` is not used, because it adds a bias to the recurrent weights."""

    def neurons(self, wrap: Wrap) -> tuple[Hidden, Readout]:
        """See :class:`~snnc.benchmarks.cpu.engines.torch_steps.TorchEngine`."""
        neurons = snntorch.Leaky(BETA, threshold=THRESHOLD, spike_grad=surrogate.fast_sigmoid(SLOPE), reset_mechanism="zero")
        integrators = snntorch.Leaky(BETA, reset_mechanism="none")

        def lif(currents: torch.Tensor, v: torch.Tensor, s: torch.Tensor, recurrent: torch.Tensor | None) -> Any:
            found = []
            for current in currents.unbind(0):
                s, v = neurons(with_recurrence(current, s, recurrent, 1.0), v)
                found.append(s)
            return torch.stack(found), v, s

        def li(currents: torch.Tensor, m: torch.Tensor) -> Any:
            found = []
            for current in currents.unbind(0):
                _, m = integrators(current, m)
                found.append(m)
            return torch.stack(found).sum(0), m

        return wrap(lif), wrap(li)


ENGINE = SnnTorchEngine
