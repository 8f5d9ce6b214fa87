"""The module that replaces ``poptorch``, and the execution of its models: micro-batches as in PopTorch, with weight updates in between."""

from __future__ import annotations

from functools import partial
from types import ModuleType
from typing import Any

import torch

from snnc.backends.poptorch.emulated.operations import EmulatedBlock, Emulator
from snnc.backends.poptorch.emulated.options import AutoStage, Error, Options, OutputMode, PipelinedExecution, ShardedExecution


class DataLoader(torch.utils.data.DataLoader[Any]):  # type: ignore[misc]  # torch is an extra, without types here
    """See ``poptorch.DataLoader``: a batch contains the samples of all micro-batches of a call."""

    def __init__(
        self, options: Options, dataset: Any, batch_size: int = 1, shuffle: bool = False, drop_last: bool = True, **others: Any
    ) -> None:
        combined = batch_size * options.device_iterations * options.replication_factor * options.Training.gradient_accumulation
        super().__init__(dataset, batch_size=combined, shuffle=shuffle, drop_last=drop_last, **others)

    @property
    def combinedBatchSize(self) -> int:  # noqa: N802  # PopTorch's name
        """Number of samples of a call."""
        return int(self.batch_size or 0)


class PoplarExecutor:
    """See ``poptorch.PoplarExecutor``: call it with the tensors of all micro-batches.

    Samples of a call are split into device iterations, then accumulated micro-batches, then replicas. An update uses the mean gradient of
    the micro-batches of a device iteration.
    """

    def __init__(
        self, emulator: Emulator, model: torch.nn.Module, options: Options | None, optimizer: torch.optim.Optimizer | None
    ) -> None:
        self._emulator, self._model, self._optimizer = emulator, model, optimizer
        self._options = options or Options()
        self._buffers: list[dict[str, torch.Tensor]] = []
        """Each replica's copies of the model's buffers, on the device."""
        if self._options.ipu_model and self._options.replication_factor > 1:
            raise Error("the IPU model does not support replicas; leave replicationFactor at 1")
        if optimizer is None and self._options.Training.gradient_accumulation > 1:
            raise Error("an inference model does not accumulate gradients; leave gradientAccumulation at 1")

    def __call__(self, *tensors: torch.Tensor) -> Any:
        """Run the model on all micro-batches and return the results that the output mode selects."""
        options, results = self._options, []
        per_iteration = options.Training.gradient_accumulation * options.replication_factor
        parts = [self._split(t, options.device_iterations * per_iteration) for t in tensors]
        for iteration in range(options.device_iterations):
            batches = [tuple(p[iteration * per_iteration + n] for p in parts) for n in range(per_iteration)]
            results += self._update(batches) if self._optimizer is not None else [self._run(n, batch) for n, batch in enumerate(batches)]
        final = options.mode == OutputMode.Final or (options.mode == OutputMode.Default and self._optimizer is not None)
        return _joined(results[-options.replication_factor :] if final else results)

    def copyWeightsToHost(self) -> None:  # noqa: N802
        """Do nothing: here the model and the device share their weights."""

    def copyWeightsToDevice(self) -> None:  # noqa: N802
        """Do nothing: here the model and the device share their weights."""

    def copyNamedBuffersToDevice(self) -> None:  # noqa: N802
        """Copy the model's buffers that the options name to all replicas."""
        of_model = dict(self._model.named_buffers())
        for name in self._options.updatable:
            if name not in of_model:
                raise Error(f"the model has no buffer {name!r}")
            for buffers in self._buffers:
                buffers[name] = of_model[name].clone()

    def destroy(self) -> None:
        """Do nothing, because the emulator holds no device."""

    def _split(self, tensor: torch.Tensor, number: int) -> tuple[torch.Tensor, ...]:
        if tensor.ndim == 0 or tensor.shape[0] % number:
            raise Error(f"a tensor of shape {tuple(tensor.shape)} cannot be divided into {number} micro-batches of equal size")
        parts: tuple[torch.Tensor, ...] = torch.chunk(tensor, number)
        return parts

    def _update(self, batches: list[tuple[torch.Tensor, ...]]) -> list[Any]:
        assert self._optimizer is not None, "only training has updates"
        self._optimizer.zero_grad()
        results = []
        for number, batch in enumerate(batches):
            results.append(self._run(number, batch))
            if not self._emulator.losses:
                raise Error("the model marks no loss; pass the loss to poptorch.identity_loss")
            (self._emulator.losses[-1].sum() / len(batches)).backward()
        self._optimizer.step()
        return [_detached(result) for result in results]

    def _run(self, number: int, batch: tuple[torch.Tensor, ...]) -> Any:
        """Run micro-batch `number` of an update on its replica; buffers that the model changes in place keep their new values."""
        emulator, replicas = self._emulator, self._options.replication_factor
        emulator.losses, emulator.blocks, emulator.running = [], [], True
        if not self._buffers:
            self._buffers = [{name: buffer.clone() for name, buffer in self._model.named_buffers()} for _ in range(replicas)]
        buffers = self._buffers[number % replicas]
        versions = {name: buffer._version for name, buffer in buffers.items()}
        try:
            with torch.set_grad_enabled(self._optimizer is not None):
                result = torch.func.functional_call(self._model, buffers, batch)
        finally:
            emulator.running = False
        self._check_blocks()
        self._copy_to_host({name for name, buffer in buffers.items() if buffer._version != versions[name]})
        return result

    def _copy_to_host(self, changed: set[str]) -> None:
        if changed and self._options.replication_factor > 1 and self._options.broadcast_buffers:
            raise Error(f"replicas change the buffer {min(changed)!r}, which they share; call broadcastBuffers(False) if they may differ")
        of_model = dict(self._model.named_buffers())
        with torch.no_grad():
            for name in changed:
                of_model[name].copy_(self._buffers[0][name])

    def _check_blocks(self) -> None:
        """Check the number of IPUs, and that a pipeline has at least one micro-batch per stage.

        The number of IPUs must suffice for the custom operation. It must be a power of two, unless it is rounded up.
        """
        options, blocks = self._options, self._emulator.blocks
        ipus = max(blocks, default=0) + 1
        if ipus < self._emulator.ipus:
            needed = self._emulator.ipus
            raise Error(f"the model uses {ipus} IPUs, but its custom operation needs {needed}; put a block on IPU {needed - 1}")
        if ipus & (ipus - 1) and not options.round_up:
            raise Error(f"the model uses {ipus} IPUs; the number must be a power of two; call autoRoundNumIPUs(True) to round it up")
        if len(blocks) < 2 or not options.strategy.pipelined:
            return
        if self._optimizer is not None:
            # One stage for each block's forward and backward pass, except that the last block runs both in one stage.
            stages, name, batches = 2 * len(blocks) - 1, "gradientAccumulation", options.Training.gradient_accumulation
        else:
            stages, name, batches = len(blocks), "deviceIterations", options.device_iterations
        if batches < stages:
            raise Error(f"the pipeline has {stages} stages, but {name} is {batches}; it must be {stages} or more")


def make_poptorch(machine: str = "ipu2", tiles: int = 0, ipus: int = 1) -> ModuleType:
    """Return a module with the public names of PopTorch; its models run on an emulated IPU.

    `machine` is ``"ipu1"``, ``"ipu2"`` or ``"ipu21"``, as in ``POPTORCH_IPU_MODEL_VERSION``; `tiles` is the number of tiles of the IPU
    (0: all of them), and `ipus` the number of IPUs whose tiles a custom operation uses.
    """
    emulator = Emulator(machine, tiles, ipus)

    def training_model(
        model: torch.nn.Module, options: Options | None = None, optimizer: torch.optim.Optimizer | None = None
    ) -> PoplarExecutor:
        optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.01)
        return PoplarExecutor(emulator, model, options, optimizer)

    def inference_model(model: torch.nn.Module, options: Options | None = None) -> PoplarExecutor:
        return PoplarExecutor(emulator, model, options, None)

    module = ModuleType("poptorch", "Substitute for PopTorch on snnc's emulator.")
    public = {
        "custom_op": emulator.custom_op,
        "identity_loss": emulator.identity_loss,
        "isRunningOnIpu": emulator.is_running,
        "Block": partial(EmulatedBlock, emulator),
        "BeginBlock": emulator.begin_block,
        "trainingModel": training_model,
        "inferenceModel": inference_model,
    }
    classes = (DataLoader, PoplarExecutor, Options, OutputMode, AutoStage, Error, PipelinedExecution, ShardedExecution)
    module.__dict__.update(public, **{c.__name__: c for c in classes})
    return module


def _detached(result: Any) -> Any:
    return type(result)(map(_detached, result)) if isinstance(result, tuple | list) else result.detach()


def _joined(results: list[Any]) -> Any:
    first = results[0]
    if isinstance(first, tuple | list):
        return type(first)(_joined([r[i] for r in results]) for i in range(len(first)))
    if len(results) == 1:
        return first
    return torch.stack(results) if first.ndim == 0 else torch.cat(results)
