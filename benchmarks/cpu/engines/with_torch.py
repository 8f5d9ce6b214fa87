"""Plain PyTorch: a Python loop over the time steps, with a surrogate gradient as an autograd function."""

from __future__ import annotations

from typing import Any

import torch

from snnc.benchmarks.cpu.engines.torch_steps import Hidden, Readout, TorchEngine, Wrap, integrators, load, spiking
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


def _lif(current: torch.Tensor, v: torch.Tensor, s: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    v = torch.addcmul(current, v, 1 - s.detach(), value=BETA)
    return _Spike.apply(v - THRESHOLD), v


def _li(current: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
    return torch.add(current, m, alpha=BETA)


class PlainTorchEngine(TorchEngine):
    """See :class:`~snnc.benchmarks.cpu.engine.BenchmarkEngine`."""

    def neurons(self, wrap: Wrap) -> tuple[Hidden, Readout]:
        return wrap(spiking(_lif)), wrap(integrators(_li))


ENGINE = PlainTorchEngine
