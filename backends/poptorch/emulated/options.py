"""Options of PopTorch that scripts usually set: the substitute for PopTorch uses some of them, and accepts and ignores the others."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any


class Error(RuntimeError):
    """The exception of PopTorch."""


class OutputMode(enum.IntEnum):
    """The results that a call returns; ``Default`` means ``Final`` in training, else ``All``."""

    Final = 0
    EveryN = 1
    All = 2
    Sum = 3
    Default = 4


class AutoStage(enum.IntEnum):
    """Rules that assign blocks to stages of a pipeline."""

    SameAsIpu = 0
    AutoIncrement = 1


class ShardedExecution:
    """Execution on several IPUs, one at a time."""

    pipelined = False

    def __init__(self, *stages: Any) -> None:
        """Accept and ignore the stages."""


class PipelinedExecution(ShardedExecution):
    """Execution on several IPUs, which process different micro-batches at the same time."""

    pipelined = True


class TrainingOptions:
    """Options of training: ``Options().Training``."""

    def __init__(self) -> None:
        self.gradient_accumulation = 1

    def gradientAccumulation(self, number: int) -> TrainingOptions:  # noqa: N802  # PopTorch's name
        """Set the number of micro-batches per update."""
        self.gradient_accumulation = positive("gradientAccumulation", number)
        return self


class PrecisionOptions:
    """``Options().Precision``; the emulator computes in 32 bits."""

    def setPartialsType(self, kind: Any) -> PrecisionOptions:  # noqa: N802
        """Accept and ignore the type of partial sums."""
        return self


class Options:
    """``poptorch.Options``: every setter returns the options."""

    def __init__(self) -> None:
        self.Training = TrainingOptions()
        self.Precision = PrecisionOptions()
        self.device_iterations = 1
        self.replication_factor = 1
        self.strategy: ShardedExecution = PipelinedExecution()
        self.mode = OutputMode.Default
        self.ipu_model = False
        self.round_up = False
        self.updatable: tuple[str, ...] = ()
        self.broadcast_buffers = True

    def deviceIterations(self, number: int) -> Options:  # noqa: N802
        """Set the number of iterations per call; in training, each updates the weights once."""
        self.device_iterations = positive("deviceIterations", number)
        return self

    def replicationFactor(self, number: int) -> Options:  # noqa: N802
        """Set the number of replicas of the model."""
        self.replication_factor = positive("replicationFactor", number)
        return self

    def useIpuModel(self, chosen: bool) -> Options:  # noqa: N802
        """Choose Graphcore's IPU Model. Networks still run on the emulator, but replicas are an error, as on the IPU Model."""
        self.ipu_model = chosen
        return self

    def useOfflineIpuTarget(self, ipu_version: int = 2) -> Options:  # noqa: N802
        """Accept and ignore a target for compilation without hardware."""
        return self

    def enableExecutableCaching(self, path: str) -> Options:  # noqa: N802
        """Accept and ignore a cache folder; the emulator has its own cache."""
        return self

    def randomSeed(self, seed: int) -> Options:  # noqa: N802
        """Accept and ignore a seed of random numbers on the device."""
        return self

    def autoRoundNumIPUs(self, chosen: bool = True) -> Options:  # noqa: N802
        """Choose whether the number of IPUs is rounded up to a power of two."""
        self.round_up = chosen
        return self

    def broadcastBuffers(self, chosen: bool = True) -> Options:  # noqa: N802
        """Choose whether all replicas share one set of buffers, which is possible only if the model does not change them."""
        self.broadcast_buffers = chosen
        return self

    def updatableNamedBuffers(self, names: Sequence[str]) -> Options:  # noqa: N802
        """Choose the buffers of the model that ``copyNamedBuffersToDevice`` updates; others keep their values from the first call."""
        self.updatable = tuple(names)
        return self

    def outputMode(self, mode: OutputMode, period: int | None = None) -> Options:  # noqa: N802
        """Choose the results that a call returns; `period` is ignored."""
        if mode not in (OutputMode.All, OutputMode.Final, OutputMode.Default):
            raise Error(f"the substitute for PopTorch returns all results or the final one, not {mode.name}")
        self.mode = mode
        return self

    def setExecutionStrategy(self, strategy: ShardedExecution) -> Options:  # noqa: N802
        """Choose how several IPUs share the model."""
        self.strategy = strategy
        return self


def positive(name: str, number: int) -> int:
    """Return `number`; raise an error unless it is an integer of at least 1."""
    if isinstance(number, bool) or int(number) != number or number < 1:
        raise Error(f"{name} is {number}; it must be 1 or more")
    return int(number)
