"""An engine for a network whose populations the plan divides into parts or reorders."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Protocol

import numpy as np

from snnc.backends.runtime.engine import (
    Array,
    GatheringEngine,
    Initial,
    MeasuringEngine,
    Moments,
    OptimizerValues,
    RepeatingEngine,
    ResumableEngine,
    SelectingEngine,
    SplitEngine,
    accumulates,
)
from snnc.backends.runtime.engine_wrapper import EngineWrapper
from snnc.compiler.tiles.partition import Correspondence


class TileEngine(SplitEngine, GatheringEngine, MeasuringEngine, RepeatingEngine, SelectingEngine, ResumableEngine, Protocol):
    """An engine of a tile machine."""


class EngineOfParts(EngineWrapper[TileEngine]):
    """Runs the placed program with `engine`, and converts arrays from and to the author's program.

    `correspondence` is the correspondence between the names and indices of the two programs. Counters are those of the placed program.
    Arguments named `parts` are parts of a batch, not of populations.
    """

    def __init__(self, engine: TileEngine, correspondence: Correspondence) -> None:
        super().__init__(engine)
        self.correspondence = correspondence

    def forward(self, inputs: Mapping[str, Array], initial: Initial) -> dict[str, Array]:
        records = self.engine.forward(self.correspondence.inputs_of_parts(inputs), self.correspondence.initial_of_parts(initial))
        return self.correspondence.records_of_whole(records)

    def train_batch(self, inputs: Mapping[str, Array], target: Array, learning_rate: float) -> float:
        return self.engine.train_batch(self.correspondence.inputs_of_parts(inputs), target, learning_rate)

    @property
    def accumulates(self) -> bool:
        return accumulates(self.engine)

    def train_parts(self, parts: Iterable[tuple[Mapping[str, Array], Array]], samples: int, learning_rate: float) -> float:
        return self.engine.train_parts(((self.correspondence.inputs_of_parts(x), y) for x, y in parts), samples, learning_rate)

    def measure(self, inputs: Mapping[str, Array], initial: Initial) -> tuple[dict[str, Array], dict[str, Moments]]:
        records, moments = self.engine.measure(self.correspondence.inputs_of_parts(inputs), self.correspondence.initial_of_parts(initial))
        # Means and squares are converted as if they were records of two steps and one sample.
        stacked = {id_: np.stack([of_part.mean, of_part.squares])[:, None] for id_, of_part in moments.items()}
        joined, counts = self.correspondence.records_of_whole(stacked), {of_part.count for of_part in moments.values()}
        return self.correspondence.records_of_whole(records), {id_: Moments(x[0, 0], x[1, 0], *counts) for id_, x in joined.items()}

    def gather_parts(self, parts: Iterable[tuple[Mapping[str, Array], Array]], samples: int, first: int = 0) -> float:
        return self.engine.gather_parts(((self.correspondence.inputs_of_parts(x), y) for x, y in parts), samples, first)

    def keep_gradients(self, share: float, *, last: bool) -> None:
        self.engine.keep_gradients(share, last=last)

    def forget_gradients(self) -> None:
        self.engine.forget_gradients()

    def gather_again(self, samples: int) -> float:
        return self.engine.gather_again(samples)

    def change_parameters(self, learning_rate: float) -> None:
        self.engine.change_parameters(learning_rate)

    def adjoint_of(self, tensor: str) -> Array:
        return self.correspondence.adjoint_of_whole(tensor, self.engine.adjoint_of)

    def gradients(self) -> dict[str, Array]:
        return self.correspondence.parameters_of_whole(self.engine.gradients())

    def gradients_named(self, names: Collection[str]) -> dict[str, Array]:
        return self.correspondence.parameters_of_whole(self.engine.gradients_named(self.correspondence.names_of_parts(names)))

    def scaled_gradients_named(self, names: Collection[str]) -> dict[str, Array]:
        return self.correspondence.parameters_of_whole(self.engine.scaled_gradients_named(self.correspondence.names_of_parts(names)))

    def parameters_named(self, names: Collection[str]) -> dict[str, Array]:
        return self.correspondence.parameters_of_whole(self.engine.parameters_named(self.correspondence.names_of_parts(names)))

    def get_parameters(self) -> dict[str, Array]:
        return self.correspondence.parameters_of_whole(self.engine.get_parameters())

    def set_parameters(self, values: Mapping[str, Array]) -> None:
        self.engine.set_parameters(self.correspondence.parameters_of_parts(values))

    def get_optimizer(self) -> OptimizerValues:
        values = self.engine.get_optimizer()
        moments = {m: self.correspondence.parameters_of_whole(arrays) for m, arrays in values.moments.items()}
        return OptimizerValues(values.updates, moments, values.loss_scale)

    def set_optimizer(self, values: OptimizerValues) -> None:
        parts = {m: self.correspondence.parameters_of_parts(arrays) for m, arrays in values.moments.items()}
        self.engine.set_optimizer(OptimizerValues(values.updates, parts, values.loss_scale))
