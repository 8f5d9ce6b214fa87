"""Base class of engines for programs that are shared libraries with the C ABI of ``snnc_abi.h``."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from enum import IntEnum
from pathlib import Path
from typing import Any, Final

import numpy as np

from snnc.backends.native.library import NativeSession, Role
from snnc.backends.runtime.engine import Initial, OptimizerValues
from snnc.backends.runtime.errors import NotTrainableError
from snnc.backends.training.updates.masks import Masks
from snnc.compiler.ir.graph import Array
from snnc.compiler.losses.weight_rounding import REMAINDER

_UPDATES: Final = "optimizer_step"
"""Setting of the ABI: the number of updates."""
_LOSS_SCALE: Final = "loss_scale"
_GOOD_UPDATES: Final = "good_updates"
"""Settings of a program with loss scaling: the scale, and the number of updates since the scale last changed."""
_GRADIENT_SCALE: Final = "gradient_scale"
"""Setting: the loss scale of the gradients of the last training step."""


class Gather(IntEnum):
    """Values of the setting ``gather`` of a program: what its next training step (or run) computes."""

    ALONE = 0
    """The complete update."""
    BEGINS = 1
    """Only gradients, which replace earlier ones."""
    GOES_ON = 2
    """Only gradients, which are added to earlier ones."""
    CHANGES = 3
    """Only the update of the parameters, from the gradients computed before."""
    AGAIN = 4
    """The gradients of the last sequence once more, after a change of parameters that only the backward pass reads."""
    MEASURES = 5
    """A forward run that computes the statistics of batch normalisations."""


class NativeEngine(ABC):
    """Training, gradients and parameters through a :class:`~snnc.backends.native.library.NativeSession`.

    Its methods are those of the protocols in :mod:`snnc.backends.runtime.engine`.
    """

    def __init__(self, library: Path, folder: Path) -> None:
        self.description: dict[str, Any] = json.loads((folder / "project.json").read_text())
        self.session = NativeSession(library, folder)
        self._defaults: dict[str, Array] = {}
        """The project's initial values of the states and outputs that start from other values in the current sequence."""
        self.draw_masks: Callable[[int, int, int], Initial] | None = None
        """Function that draws the masks of dropout layers for a training step, from the number of the update, the position of the step's
        first sample in the batch of the update, and the number of samples; None: the network has no dropout layers."""
        self._first_sample = 0
        """Position of the first sample of a training step in the batch of its update."""

    def drop_by(self, masks: Masks) -> None:
        """Use `masks` to draw the masks of dropout layers in each training step."""
        if masks.layers:
            self.draw_masks = lambda update, first, batch: masks.of(self.session.get, update, first, batch)

    def train_batch(self, inputs: Mapping[str, Array], target: Array, learning_rate: float) -> float:
        if not self.description["training"]:
            raise NotTrainableError(f"{self.description['name']!r} was compiled for inference; compile it with a loss and an optimiser.")
        self._set_batch(inputs, target)
        draw = self.draw_masks
        self._set_initial({} if draw is None else draw(int(self.session.get(_UPDATES)[0]), self._first_sample, len(target)))
        self.session.set("lr", np.array([learning_rate], dtype=np.float32))
        return self.session.train_step()

    def gradients(self) -> dict[str, Array]:
        return self.gradients_named([name.removeprefix("d_") for name in self.session.with_role(Role.GRADIENT)])

    def gradients_named(self, names: Collection[str]) -> dict[str, Array]:
        gradients = self.scaled_gradients_named(names)
        if _GRADIENT_SCALE not in self.session.tensors:
            return gradients
        factor = self.session.get(_GRADIENT_SCALE)[0]
        return {name: gradient / factor for name, gradient in gradients.items()}

    def scaled_gradients_named(self, names: Collection[str]) -> dict[str, Array]:
        shapes = {p["tensor"]: p["shape"] for p in self.description["parameters"]}
        return {name: self.session.get(f"d_{name}").reshape(shapes[name]) for name in names}

    def get_parameters(self) -> dict[str, Array]:
        return self.parameters_named([p["tensor"] for p in self.description["parameters"]])

    def parameters_named(self, names: Collection[str]) -> dict[str, Array]:
        shapes = {p["tensor"]: p["shape"] for p in self.description["parameters"]}
        return {name: self.session.get(name).reshape(shapes[name]) for name in names}

    def set_parameters(self, values: Mapping[str, Array]) -> None:
        for name, value in values.items():
            self.session.set(name, value)
            if (remainder := f"{name}_{REMAINDER}") in self.session.tensors:
                self.session.set(remainder, np.zeros(self.session.tensors[remainder].shape, dtype=np.float32))

    def get_optimizer(self) -> OptimizerValues:
        shapes = {p["tensor"]: p["shape"] for p in self.description["parameters"]}
        moments: dict[str, dict[str, Array]] = {}
        for tensor in self.session.with_role(Role.MOMENT):
            name, _, moment = tensor.rpartition("_")
            moments.setdefault(moment, {})[name] = self.session.get(tensor).reshape(shapes[name])
        scale = None
        if _LOSS_SCALE in self.session.tensors:
            scale = (float(self.session.get(_LOSS_SCALE)[0]), int(self.session.get(_GOOD_UPDATES)[0]))
        return OptimizerValues(int(self.session.get(_UPDATES)[0]), moments, scale)

    def set_optimizer(self, values: OptimizerValues) -> None:
        for moment, arrays in values.moments.items():
            for name, value in arrays.items():
                self.session.set(f"{name}_{moment}", value)
        self.session.set(_UPDATES, np.array([values.updates], dtype=np.int32))
        if values.loss_scale is not None:
            factor, good = values.loss_scale
            self.session.set(_LOSS_SCALE, np.array([factor], dtype=np.float32))
            self.session.set(_GOOD_UPDATES, np.array([good], dtype=np.int32))

    def profile(self) -> dict[str, Any]:
        """Return the counters and times that the program reports."""
        return self.session.profile()

    def close(self) -> None:
        self.session.close()

    def _set_batch(self, inputs: Mapping[str, Array], target: Array) -> None:
        self._set_inputs(inputs)
        self.session.set("labels", target)

    @abstractmethod
    def _set_inputs(self, inputs: Mapping[str, Array]) -> None: ...

    def _set_initial(self, initial: Initial) -> None:
        """Set the initial values of this sequence; values that were set only for the previous sequence are reset to the project's."""
        # A place is the canonical name of a state, or an output buffer, whose name begins with that of its population.
        wanted = {
            f"{place}_initial" if place.startswith(f"{population}_") else f"{population}_{place}_initial": value
            for (population, place), value in initial.items()
        }
        for name, value in self._defaults.items():
            if name not in wanted:
                self.session.set(name, value)
        self._defaults = {name: value for name, value in self._defaults.items() if name in wanted}
        for name, value in wanted.items():
            if name in self.session.tensors:
                self._defaults.setdefault(name, self.session.get(name))
                self.session.set(name, value)
