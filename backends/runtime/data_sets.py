"""The protocol of data sets: objects that yield their samples batch by batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class BatchedData(Protocol):
    """Samples that are read batch by batch; for example, a :class:`snnc.data.DataSet`."""

    def __len__(self) -> int:
        """Number of samples."""

    def batches(self, size: int, *, order: Any = None, epoch: int = 0) -> Iterator[tuple[Any, Any]]:
        """Yield inputs, [T, B, *shape] or a mapping of such arrays by name, and targets, of `size` samples each.

        `order` contains the positions of the samples; None: all, in the order of the data set. Random changes of a sample (augmentation)
        depend on the number of the `epoch`.
        """
