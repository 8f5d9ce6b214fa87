"""Training of networks with batch normalisation: each update computes the statistics of its batch before the gradients.

:mod:`snnc.backends.training.updates.norm_passes` lists the passes of an update. An engine that cannot repeat a backward pass runs
forward before each one. So does every engine if each step has its own statistics: the sums for the gradient through them are then inputs
of the program, which an engine receives only with a forward pass.

If an update has several parts, each part has its own statistics, as in PyTorch: all passes run for each part, the gradients of the parts
are summed, and each part updates the running statistics. Processes that share a batch compute the statistics of all their samples, as
``torch.nn.SyncBatchNorm`` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

import numpy as np

from snnc.backends.runtime.engine import (
    Array,
    Engine,
    Initial,
    OptimizerValues,
    RepeatingEngine,
    ResumableEngine,
    SelectingEngine,
    SplitEngine,
    SteppingEngine,
    accumulates,
    samples_at_once,
)
from snnc.backends.runtime.engine_wrapper import EngineWrapper
from snnc.backends.runtime.errors import NormalisationError
from snnc.backends.training.updates.masks import masks_of
from snnc.backends.training.updates.norm_layers import norm_layers
from snnc.backends.training.updates.norm_passes import NormalisedBatch, NormPasses
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.lowering.statistics import statistics_outputs
from snnc.compiler.neurons.library.batch_norm import is_batch_norm


class NormalisingEngine(EngineWrapper[SplitEngine]):
    """Trains on `engine` with the statistics of each batch; its methods are those of :mod:`snnc.backends.runtime.engine`.

    Raises a NormalisationError if the engine cannot separate gradients from updates.
    """

    def __init__(self, engine: Engine, program: StepProgram) -> None:
        if not (isinstance(engine, SplitEngine) and isinstance(engine, ResumableEngine)):
            name = next(p.label for p in program.populations if is_batch_norm(p.model))
            raise NormalisationError(
                f"{name!r} normalises over a batch, but this target cannot train it: it has one program for gradients and update. Train on "
                "'cpu', 'cuda', 'reference' or a machine; compiled without a loss, it runs on this target with the running statistics."
            )
        super().__init__(engine)
        self._passes = NormPasses(engine, norm_layers(program))
        self._masks = masks_of(program)
        self._hidden = {o.id for o in statistics_outputs(program).values()}

    def share_batches(self, total: Callable[[Array], Array]) -> None:
        """Compute statistics over all processes that share a batch; `total` sums an array over them, in the same order in each process."""
        self._passes.total = total

    def forward(self, inputs: Mapping[str, Array], initial: Initial) -> dict[str, Array]:
        return self._shown(self.engine.forward(self._passes.filled(inputs), initial))

    @property
    def accumulates(self) -> bool:
        return accumulates(self.engine)

    def train_batch(self, inputs: Mapping[str, Array], target: Array, learning_rate: float) -> float:
        return self.train_parts([(inputs, target)], len(target), learning_rate)

    def train_parts(self, parts: Iterable[tuple[Mapping[str, Array], Array]], samples: int, learning_rate: float) -> float:
        loss = self.gather_parts(parts, samples)
        self.engine.change_parameters(learning_rate)
        return loss

    def gather_parts(self, parts: Iterable[tuple[Mapping[str, Array], Array]], samples: int, first: int = 0) -> float:
        """See :class:`~snnc.backends.runtime.engine.SplitEngine`; sets the running statistics, too.

        All processes that share a batch must call it; `parts` is empty if a process has no samples of the batch.
        """
        values = self._parameters()
        running = {name: values[name] for layer in self._passes.layers for name in layer.parameters.values()}
        loss = 0.0
        try:
            for part, count, steps, last in self._in_step(parts):
                inputs = None if part is None else self._passes.filled(part[0])
                batch = NormalisedBatch(inputs, values, steps, self._loss_scale())
                if part is None:
                    self._passes.measure(batch, running, {})
                    self._passes.set_sums(batch, lambda: None)
                    continue
                share = count / samples
                loss += share * self._gather(batch, part[1], running, first, count)
                first += len(part[1])
                if share < 1:
                    self.engine.keep_gradients(share, last=last)
        except BaseException:
            self.engine.forget_gradients()
            raise
        finally:
            self.engine.set_parameters(running)
        return loss

    def _in_step(
        self, parts: Iterable[tuple[Mapping[str, Array], Array]]
    ) -> Iterator[tuple[tuple[Mapping[str, Array], Array] | None, int, int, bool]]:
        """Yield the parts of an update, equally often in all processes that share it.

        Each is yielded with its number of samples in all processes, its number of steps, and whether this process has no further part. A
        part of None means that only other processes have further parts.
        """
        remaining = iter(parts)
        part = next(remaining, None)
        while True:
            steps, count = (0, 0) if part is None else (len(next(iter(part[0].values()))), len(part[1]))
            if self._passes.total is not None:
                processes, steps, count = map(int, self._passes.total(np.array([part is not None, steps, count], np.float64)))
                steps //= max(1, processes)
            if not count:
                return
            following = next(remaining, None)
            yield part, count, steps, following is None
            part = following

    def _gather(self, batch: NormalisedBatch, target: Array, running: dict[str, Array], first: int, count: int) -> float:
        """Compute the gradients of one part of an update, with its own statistics; return its share of the mean loss of `count` samples."""
        assert batch.inputs is not None, "this process has samples"
        inputs, engine = batch.inputs, self.engine
        masks: Initial = {}
        if self._masks.layers:
            masks = self._masks.of(batch.values.__getitem__, self.get_optimizer().updates, first, len(target))
        self._passes.measure(batch, running, masks)

        def gather() -> float:
            return engine.gather_parts([(inputs, target)], count, first)

        loss = gather()
        if isinstance(engine, RepeatingEngine) and self._passes.repeats:
            self._passes.set_sums(batch, partial(engine.gather_again, count))
        else:
            self._passes.set_sums(batch, gather)
        return loss

    def _loss_scale(self) -> float:
        """Return the loss scale if ``engine.gradients()`` must still be multiplied by it; 1 if the engine returns scaled gradients."""
        if isinstance(self.engine, SelectingEngine):
            return 1.0
        scale = self.get_optimizer().loss_scale
        return 1.0 if scale is None else scale[0]

    def _parameters(self) -> dict[str, Array]:
        """Return the parameters and gains of the normalisations; all parameters if dropout layers draw masks."""
        if self._masks.layers or not isinstance(self.engine, SelectingEngine):
            return self.engine.get_parameters()
        return self.engine.parameters_named(self._passes.parameters)

    def _shown(self, records: Mapping[str, Array]) -> dict[str, Array]:
        return {id_: record for id_, record in records.items() if id_ not in self._hidden}

    def gradients(self) -> dict[str, Array]:
        return self.engine.gradients()

    def get_parameters(self) -> dict[str, Array]:
        return self.engine.get_parameters()

    def set_parameters(self, values: Mapping[str, Array]) -> None:
        self.engine.set_parameters(values)

    def get_optimizer(self) -> OptimizerValues:
        assert isinstance(self.engine, ResumableEngine)
        return self.engine.get_optimizer()

    def set_optimizer(self, values: OptimizerValues) -> None:
        assert isinstance(self.engine, ResumableEngine)
        self.engine.set_optimizer(values)

    def reset(self, batch: int, initial: Initial) -> None:
        assert isinstance(self.engine, SteppingEngine)
        self.engine.reset(batch, initial)

    def step(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        assert isinstance(self.engine, SteppingEngine)
        return self._shown(self.engine.step(self._passes.filled(inputs, leading=1)))

    def max_samples(self, steps: int, batch: int) -> int:
        return samples_at_once(self.engine, steps, batch)
