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
        """Yield pairs of inputs, [T, B, *shape] or a mapping of such arrays by name, and targets.

        Parameters
        ----------
        size
            Number of samples per batch.
        order
            Positions of the samples to yield; None: all, in the order of the data set.
        epoch
            Number of the epoch, on which random changes of the samples (augmentation) depend.
        """
