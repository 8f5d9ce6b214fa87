"""Plain PyTorch: a Python loop over the time steps, with a surrogate gradient as an autograd function."""

from __future__ import annotations

from typing import Any

import torch

from snnc.benchmarks.cpu.engines.torch_steps import Hidden, Readout, TorchEngine, Wrap, load, with_recurrence
from snnc.benchmarks.cpu.workloads import BETA, SLOPE, THRESHOLD

__all__ = ["ENGINE", "VERSIONS", "load"]

VERSIONS = ("torch",)


class _Spike(torch.autograd.Function):  # type: ignore[misc]  # torch may be missing
    """Heaviside step with the derivative of a fast sigmoid."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return (x > 0).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        return gradient / (1 + SLOPE * x.abs()).square()


def _lif(
    currents: torch.Tensor, v: torch.Tensor, s: torch.Tensor, recurrent: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Run a few steps of LIF neurons; return the spikes of all steps, and the last membrane potential and spikes."""
    found = []
    for current in currents.unbind(0):
        total = with_recurrence(current, s, recurrent, 1.0)
        v = torch.addcmul(total, v, 1 - s.detach(), value=BETA)
        s = _Spike.apply(v - THRESHOLD)
        found.append(s)
    return torch.stack(found), v, s


def _li(currents: torch.Tensor, m: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Run a few steps of leaky integrators; return the sum of the membrane potential over the steps, and its last value."""
    found = []
    for current in currents.unbind(0):
        m = torch.add(current, m, alpha=BETA)
        found.append(m)
    return torch.stack(found).sum(0), m


class PlainTorchEngine(TorchEngine):
    """See :class:`~snnc.benchmarks.cpu.engine.BenchmarkEngine`."""

    def neurons(self, wrap: Wrap) -> tuple[Hidden, Readout]:
        """See :class:`~snnc.benchmarks.cpu.engines.torch_steps.TorchEngine`."""
        return wrap(_lif), wrap(_li)


ENGINE = PlainTorchEngine
