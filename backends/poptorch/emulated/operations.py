"""PopTorch functions that are called inside a model: custom operations, pipeline blocks, the loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import torch

from snnc.backends.poptorch.emulated.options import Error
from snnc.backends.poptorch.popart import GradientOperation, RunningOperation, open_operation


@dataclass
class Emulator:
    """The emulated machine, the operations lowered for it, and the losses and blocks that the running model marks."""

    machine: str = "ipu2"
    tiles: int = 0
    """Number of tiles of an IPU; 0: all tiles of `machine`."""
    ipus: int = 1
    """Number of IPUs that a custom operation uses; the model must use at least as many."""
    operations: dict[tuple[Any, ...], RunningOperation] = field(default_factory=dict)
    gradients: dict[int, GradientOperation] = field(default_factory=dict)
    """Gradient operations, by the ``id()`` of the forward operation."""
    losses: list[torch.Tensor] = field(default_factory=list)
    blocks: list[int] = field(default_factory=list)
    """The IPU of each block, in the order of execution."""
    running: bool = False

    def custom_op(
        self,
        inputs: Sequence[torch.Tensor],
        name: str,
        domain: str,
        domain_version: int,
        example_outputs: Sequence[torch.Tensor],
        attributes: Mapping[str, Any] | None = None,
    ) -> list[torch.Tensor]:
        """See ``poptorch.custom_op``; attributes are strings, tensors are float32."""
        strings = dict(attributes or {})
        for key, value in strings.items():
            if not (isinstance(value, str) and value.isascii()):
                raise Error(f"the attribute {key!r} is {value!r}; the substitute for PopTorch accepts ASCII strings")
        if wrong := [str(t.dtype) for t in (*inputs, *example_outputs) if t.dtype != torch.float32]:
            raise Error(f"the substitute for PopTorch passes 32-bit floats to custom operations, not {wrong[0]}")
        shapes = tuple(tuple(t.shape) for t in inputs)
        identity = (domain, name, domain_version, tuple(sorted(strings.items())), shapes)
        if identity not in self.operations:
            self.operations[identity] = open_operation(
                domain, name, domain_version, strings, shapes, machine=self.machine, tiles=self.tiles, ipus=self.ipus
            )
        operation = self.operations[identity]
        if operation.shapes != tuple(tuple(t.shape) for t in example_outputs):
            raise Error(f"example_outputs of {name} do not have the shapes {operation.shapes} that its setup() reports")
        return list(_Custom.apply(self, operation, *inputs))

    def gradient(self, operation: RunningOperation) -> GradientOperation:
        """Return the gradient operation; it is lowered when it is first needed."""
        if id(operation) not in self.gradients:
            self.gradients[id(operation)] = operation.gradient()
        return self.gradients[id(operation)]

    def identity_loss(self, x: torch.Tensor, reduction: str) -> torch.Tensor:
        """See ``poptorch.identity_loss``: marks the value to differentiate."""
        reduced = {"none": lambda: x, "sum": x.sum, "mean": x.mean}
        if reduction not in reduced:
            raise Error(f"the reduction {reduction!r} is unknown; use 'none', 'sum' or 'mean'")
        loss: torch.Tensor = reduced[reduction]()
        self.losses.append(loss)
        return loss

    def enter(self, ipu: int | None) -> None:
        """Record that the following operations run on IPU `ipu`; with None, on the same IPU as before."""
        if ipu is not None and self.blocks[-1:] != [ipu]:
            self.blocks.append(ipu)

    def begin_block(self, layer: torch.nn.Module, user_id: str | int | None = None, ipu_id: int | None = None) -> torch.nn.Module:
        """See ``poptorch.BeginBlock``: `layer` and the following operations run on one IPU."""
        layer.register_forward_pre_hook(lambda *_: self.enter(ipu_id))
        return layer

    def is_running(self) -> bool:
        """See ``poptorch.isRunningOnIpu``."""
        return self.running


class _Custom(torch.autograd.Function):  # type: ignore[misc]  # torch is an extra, without types here
    """A custom operation and its gradient as a PyTorch function."""

    @staticmethod
    def forward(ctx: Any, emulator: Emulator, operation: RunningOperation, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        outputs = tuple(torch.from_numpy(a) for a in operation.run([t.detach().contiguous().numpy() for t in inputs]))
        ctx.emulator, ctx.operation, ctx.number = emulator, operation, len(inputs)
        ctx.save_for_backward(*inputs, *outputs)
        return outputs

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        operation = ctx.emulator.gradient(ctx.operation)
        saved = ctx.saved_tensors
        kinds = {"in": saved[: ctx.number], "out": saved[ctx.number :], "gradient": gradients}
        arrays = [kinds[source.kind][source.number].detach().contiguous().numpy() for source in operation.sources]
        of_inputs: list[torch.Tensor | None] = [None] * ctx.number
        for target, array in zip(operation.targets, operation.run(arrays), strict=True):
            of_inputs[target] = torch.from_numpy(array)
        return None, None, *of_inputs


class EmulatedBlock:
    """See ``poptorch.Block``: operations inside the block run on one IPU.

    `emulator` records the blocks of the model. The name `user_id` is ignored; `ipu_id` is the IPU, None: that of the operations before it.
    """

    def __init__(self, emulator: Emulator, user_id: str | int | None = None, ipu_id: int | None = None) -> None:
        self._emulator, self._ipu = emulator, ipu_id

    def __enter__(self) -> EmulatedBlock:
        self._emulator.enter(self._ipu)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        return None
