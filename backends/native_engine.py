"""What every engine does alike whose program is a native artefact behind the common C ABI."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np

from snnc.backends.engine import Initial
from snnc.backends.errors import NotTrainableError
from snnc.backends.native import NativeSession, Role
from snnc.compiler.graph import Array


class NativeEngine(ABC):
    """Training, gradients and parameters through a :class:`~snnc.backends.native.NativeSession`."""

    session: NativeSession
    description: dict[str, Any]

    def train_batch(self, inputs: Mapping[str, Array], target: Array, learning_rate: float) -> float:
        """See :class:`~snnc.backends.engine.Engine`."""
        if not self.description["training"]:
            raise NotTrainableError(f"{self.description['name']!r} was compiled for inference; give a loss and an optimizer to train it.")
        self._set_inputs(inputs)
        self._set_initial({})
        self.session.set("labels", target)
        self.session.set("lr", np.array([learning_rate], dtype=np.float32))
        return self.session.train_step()

    def gradients(self) -> dict[str, Array]:
        """See :class:`~snnc.backends.engine.GradientEngine`."""
        found = self.session.with_role(Role.GRADIENT)
        shapes = {p["tensor"]: p["shape"] for p in self.description["parameters"]}
        return {name.removeprefix("d_"): self.session.get(name).reshape(shapes[name.removeprefix("d_")]) for name in found}

    def get_parameters(self) -> dict[str, Array]:
        """See :class:`~snnc.backends.engine.Engine`."""
        return {p["tensor"]: self.session.get(p["tensor"]).reshape(p["shape"]) for p in self.description["parameters"]}

    def set_parameters(self, values: Mapping[str, Array]) -> None:
        """See :class:`~snnc.backends.engine.Engine`."""
        for name, value in values.items():
            self.session.set(name, value)

    @abstractmethod
    def _set_inputs(self, inputs: Mapping[str, Array]) -> None: ...

    @abstractmethod
    def _set_initial(self, initial: Initial) -> None: ...
