"""Creation of the module that replaces ``poptorch``."""

from __future__ import annotations

from functools import partial
from types import ModuleType

import torch

from snnc.backends.poptorch.emulated import options
from snnc.backends.poptorch.emulated.executor import DataLoader, PoplarExecutor
from snnc.backends.poptorch.emulated.operations import EmulatedBlock, Emulator


def make_poptorch(machine: str = "ipu2", tiles: int = 0, ipus: int = 1) -> ModuleType:
    """Return a module with the public names of PopTorch; its models run on an emulated IPU.

    Parameters
    ----------
    machine
        ``"ipu1"``, ``"ipu2"`` or ``"ipu21"``, as in ``POPTORCH_IPU_MODEL_VERSION``.
    tiles
        Number of tiles of the IPU; 0 for all tiles of `machine`.
    ipus
        Number of IPUs whose tiles a custom operation uses.
    """
    emulator = Emulator(machine, tiles, ipus)

    def training_model(
        model: torch.nn.Module, options: options.Options | None = None, optimizer: torch.optim.Optimizer | None = None
    ) -> PoplarExecutor:
        optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.01)
        return PoplarExecutor(emulator, model, options, optimizer)

    def inference_model(model: torch.nn.Module, options: options.Options | None = None) -> PoplarExecutor:
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
        **{c.__name__: c for c in (DataLoader, PoplarExecutor, options.Options, options.OutputMode, options.AutoStage, options.Error)},
        **{c.__name__: c for c in (options.PipelinedExecution, options.ShardedExecution)},
    }
    module.__dict__.update(public)
    return module
