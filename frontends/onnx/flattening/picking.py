"""A pick: each of its values is a value of one of its sources, or a constant."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from snnc.frontends.onnx.flattening.node import Array, Shape


@dataclass(frozen=True, eq=False)
class Pick:
    """The sources of the values of one sample.

    Attributes
    ----------
    index
        For each value, its place among the concatenated values of all sources; -1 for a constant.
    fill
        The constants, if any, for all values.
    batches
        Batch axis of each source.
    batch
        Batch axis of the result.
    """

    index: Array
    fill: Array | None
    batches: tuple[int | None, ...]
    batch: int | None

    @property
    def plain(self) -> bool:
        """Whether the values are those of the sources, in their order."""
        return self.fill is None and np.array_equal(self.index, np.arange(self.index.size))

    def evaluate(self, shape: Shape, arrays: list[Array]) -> Array:
        """Return the values, in `shape`, from those of the sources."""
        rows = [
            a.reshape(1, -1) if axis is None else np.moveaxis(a, axis, 0).reshape(a.shape[axis], -1)
            for a, axis in zip(arrays, self.batches, strict=True)
        ]
        count = max(r.shape[0] for r in rows)
        whole = np.concatenate([np.broadcast_to(r, (count, r.shape[1])) for r in rows], 1)
        taken = whole[:, self.index]
        if self.fill is not None:
            taken = np.where(self.index < 0, self.fill, taken)
        if self.batch is None:
            return np.asarray(taken.reshape(shape) if taken.size == math.prod(shape) else np.broadcast_to(taken, shape))
        rest = tuple(d for k, d in enumerate(shape) if k != self.batch)
        return np.moveaxis(taken.reshape(count, *rest), 0, self.batch)
