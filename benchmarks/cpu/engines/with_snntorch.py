"""snnTorch: its Leaky neurons; a layer multiplies its inputs of all steps by its weights before the loop over the steps."""

from __future__ import annotations

import snntorch
from snntorch import surrogate

from snnc.benchmarks.cpu.engines.torch_steps import Hidden, Readout, TorchEngine, Wrap, integrators, load, spiking
from snnc.benchmarks.cpu.workloads import BETA, SLOPE, THRESHOLD

__all__ = ["ENGINE", "VERSIONS", "load"]

VERSIONS = ("snntorch", "torch")


class SnnTorchEngine(TorchEngine):
    """See :class:`~snnc.benchmarks.cpu.engine.BenchmarkEngine`; ``RLeaky`` is not used, because it adds a bias to the recurrent weights."""

    def neurons(self, wrap: Wrap) -> tuple[Hidden, Readout]:
        neurons = snntorch.Leaky(BETA, threshold=THRESHOLD, spike_grad=surrogate.fast_sigmoid(SLOPE), reset_mechanism="zero")
        leaky = snntorch.Leaky(BETA, reset_mechanism="none")
        return wrap(spiking(lambda current, v, _: neurons(current, v))), wrap(integrators(lambda current, m: leaky(current, m)[1]))


ENGINE = SnnTorchEngine
