"""Shared parts of the engines on PyTorch: layers over whole sequences, the loss, Adam; each engine adds its neurons."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.nn import functional

from snnc.benchmarks.cpu.engine import GRAPHED, LOSS_SCALE, SHORT, TF32
from snnc.benchmarks.cpu.problem import TrainingStepProblem
from snnc.benchmarks.cpu.workloads import LEARNING_RATE, ConvLayer
from snnc.compiler.ir.graph import Array

Wrap = Callable[[Any], Any]
Hidden = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor | None], tuple[torch.Tensor, torch.Tensor, torch.Tensor]]
"""Currents [steps, B, ...], membrane potential, spikes, recurrent weights -> spikes [steps, B, ...], last membrane potential and spikes."""
Readout = Callable[[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]
"""Currents [steps, B, classes] and membrane potential -> the sum of the membrane potentials, and the last one."""
CHUNK = 10
"""Maximum number of time steps in a compiled graph: a whole sequence takes minutes to compile and runs no faster."""
WARM_STEPS = 3
"""Number of training steps before the capture of a CUDA graph."""


def load() -> None:
    """Import PyTorch's compiler, and run a small training step with a convolution, pooling and a linear layer."""
    import torch._dynamo
    import torch._inductor.compile_fx

    layers = torch.nn.Sequential(torch.nn.Conv2d(1, 1, 2), torch.nn.MaxPool2d(2), torch.nn.Flatten(), torch.nn.Linear(1, 1))
    optimizer = torch.optim.Adam(layers.parameters(), fused=True)
    functional.cross_entropy(layers(torch.zeros(1, 1, 3, 3)), torch.zeros(1, dtype=torch.int64)).backward()
    optimizer.step()


class TorchEngine(ABC):
    """An engine that computes layer by layer: one product for the inputs of all steps, then a loop over the steps for the neurons.

    Products in lower precisions are PyTorch's own: TF32 by its switches, 16 bits by autocast. States of the neurons stay float32.
    """

    scale: float = 1.0
    readout_scale: float = 1.0
    """Factors of the currents, for neurons with other units. They are applied to the weights or, for products of 16 bits, after the
    products, so that the same weights are rounded to 16 bits as in the other engines."""
    loop_scale: float = 1.0
    """Factor that is applied to the recurrent currents within the loop."""

    def __init__(self, problem: TrainingStepProblem, mode: str, variant: str, device: str = "cpu") -> None:
        torch.manual_seed(0)
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = mode == TF32
        self._short: torch.dtype | None = getattr(torch, mode) if mode in SHORT else None
        self._loss_scale = LOSS_SCALE.get(mode, 1.0)
        self.loop_scale = 1.0 if self._short is None else self.scale
        self.workload, self._device = problem.workload, device
        self.x, self.y = torch.from_numpy(problem.x).to(device), torch.from_numpy(problem.y).to(device)
        self._start = {name: torch.from_numpy(value).to(device) for name, value in problem.weights.items()}
        self.parameters = {name: torch.nn.Parameter(value.clone()) for name, value in self._start.items()}
        graphed = self._graphed = variant == GRAPHED
        self._optimizer = torch.optim.Adam(self.parameters.values(), lr=LEARNING_RATE, fused=True, capturable=graphed)
        if variant == "one thread":
            torch.set_num_threads(1)
        steps, self.compiled = self.workload.steps, variant == "compiled"
        self._chunk = next(n for n in range(min(CHUNK, steps), 0, -1) if steps % n == 0) if self.compiled else steps
        self._lif, self._li = self.neurons(partial(torch.compile, dynamic=False, fullgraph=False) if self.compiled else lambda call: call)
        self._replay = self._captured() if graphed else None

    @abstractmethod
    def neurons(self, wrap: Wrap) -> tuple[Hidden, Readout]:
        """Return the neurons as functions of several time steps, passed through `wrap`, which may compile them."""

    def hidden(self, currents: torch.Tensor, recurrent: torch.Tensor | None) -> torch.Tensor:
        """Return the spikes of a layer from its currents, both [T, B, ...]."""
        v, s, parts = _zeros(currents), _zeros(currents), []
        for part in currents.split(self._chunk):
            spikes, v, s = self._lif(part, v, s, recurrent)
            parts.append(spikes)
        return torch.cat(parts) if len(parts) > 1 else parts[0]

    def readout(self, currents: torch.Tensor) -> torch.Tensor:
        """Return the mean membrane [B, classes] of the leaky readout."""
        m, total = _zeros(currents), _zeros(currents)
        for part in currents.split(self._chunk):
            sums, m = self._li(part, m)
            total = total + sums
        return total / len(currents)

    def step(self) -> float:
        loss = self._train() if self._replay is None else self._replay()
        if self._device == "cuda":
            torch.cuda.synchronize()
        return float(loss)

    def _train(self) -> torch.Tensor:
        self._optimizer.zero_grad(set_to_none=True)
        # A capture must not reuse casts that autocast made for an earlier step.
        with torch.autocast(self._device, dtype=self._short, enabled=self._short is not None, cache_enabled=not self._graphed):
            loss = functional.cross_entropy(self._outputs(), self.y)
        (loss if self._loss_scale == 1.0 else loss * self._loss_scale).backward()
        if self._loss_scale != 1.0:
            torch._foreach_mul_([p.grad for p in self.parameters.values() if p.grad is not None], 1 / self._loss_scale)
        self._optimizer.step()
        return loss.detach()

    def _captured(self) -> Callable[[], torch.Tensor]:
        """Return a function that replays a training step as one CUDA graph (pytorch.org/docs, "CUDA graphs", whole-network capture)."""
        if self._device != "cuda":
            raise NotImplementedError("CUDA graphs need a CUDA device")
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(WARM_STEPS):
                self._train()
        torch.cuda.current_stream().wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            loss = self._train()
        self.reset()
        with torch.no_grad():
            for state in self._optimizer.state.values():
                for tensor in state.values():
                    tensor.zero_()

        def replay() -> torch.Tensor:
            graph.replay()
            return loss

        return replay

    def gradients(self) -> dict[str, Array]:
        return {name: p.grad.cpu().numpy().copy() for name, p in self.parameters.items() if p.grad is not None}

    def weights(self) -> dict[str, Array]:
        return {name: p.detach().cpu().numpy().copy() for name, p in self.parameters.items()}

    def reset(self) -> None:
        with torch.no_grad():
            for name, value in self._start.items():
                self.parameters[name].copy_(value)

    def _outputs(self) -> torch.Tensor:
        spikes, steps, batch = self.x, self.x.shape[0], self.x.shape[1]
        for n, layer in enumerate(self.workload.layers, 1):
            weight, bias = self._weight(f"hidden{n}.weight", self.scale), self._weight(f"hidden{n}.bias", self.scale)
            if isinstance(layer, ConvLayer):
                maps = functional.max_pool2d(functional.conv2d(spikes.flatten(0, 1), weight, bias), layer.pool)
                currents = maps.unflatten(0, (steps, batch))
            else:
                currents = functional.linear(spikes.flatten(2), weight, bias)
            name = f"hidden{n}.recurrent"
            recurrent = self._weight(name, self.scale) if name in self.parameters else None
            spikes = self.hidden(self._currents(currents, self.scale), recurrent)
        if not self.workload.classes:
            return spikes.sum(0)
        scale = self.readout_scale
        weight, bias = self._weight("readout.weight", scale), self._weight("readout.bias", scale)
        return self.readout(self._currents(functional.linear(spikes.flatten(2), weight, bias), scale))

    def _weight(self, name: str, scale: float) -> torch.Tensor:
        return self.parameters[name] if scale == 1.0 or self._short is not None else self.parameters[name] * scale

    def _currents(self, sums: torch.Tensor, scale: float) -> torch.Tensor:
        """Scale the results of 16-bit products, and convert them to float32 in the same kernel."""
        if self._short is None or scale == 1.0:
            return sums
        return sums * torch.full((1,), scale, device=sums.device)


def with_recurrence(current: torch.Tensor, spikes: torch.Tensor, recurrent: torch.Tensor | None, scale: float) -> torch.Tensor:
    """Return the currents [B, n] of a step, plus `scale` times the currents through the recurrent weights [n, n]."""
    if recurrent is None:
        return current
    if scale == 1.0:
        return torch.addmm(current, spikes, recurrent.t())
    return torch.add(current, torch.mm(spikes, recurrent.t()), alpha=scale)


def integrators(step: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> Readout:
    """Return the readout whose membrane potential after a step is ``step(current, membrane potential before)``."""

    def li(currents: torch.Tensor, m: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        membranes = []
        for current in currents.unbind(0):
            m = step(current, m)
            membranes.append(m)
        return torch.stack(membranes).sum(0), m

    return li


def spiking(step: Callable[..., tuple[torch.Tensor, torch.Tensor]], scale: float = 1.0) -> Hidden:
    """Return neurons with ``step(current, membrane potential, spikes) -> (spikes, membrane potential)``.

    `scale` multiplies the recurrent currents.
    """

    def lif(
        currents: torch.Tensor, v: torch.Tensor, s: torch.Tensor, recurrent: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        spikes = []
        for current in currents.unbind(0):
            s, v = step(with_recurrence(current, s, recurrent, scale), v, s)
            spikes.append(s)
        return torch.stack(spikes), v, s

    return lif


def _zeros(currents: torch.Tensor) -> torch.Tensor:
    return torch.zeros(currents.shape[1:], device=currents.device)
