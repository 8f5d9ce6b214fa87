"""Read the accuracies of sparse training that ``benchmarks/scripts/training/sparse_training.py`` stored."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import Any, Final

from snnc.benchmarks.reproduce.figure import spread_note
from snnc.benchmarks.reproduce.measured import stored_results

DATA: Final = {"strokes": "strokes of a pen", "words": "spoken words in SHD's format"}
"""Label of each synthetic data set."""
SHARES: Final = {"dense": 100.0, "10 %": 10.0, "5 %": 5.0, "1 %": 1.0}
"""Capacity in % of a hidden layer, by name of the setting. "dense" has no limit; in the others, the second threshold moves as published."""
WIDTHS: Final = [1024, 512, 256]
"""Numbers of neurons of the hidden layers in the figures; rows that do not state their widths have these."""
NARROW: Final = "10 %, -0.1 from the start"
DEFAULT_WEIGHTS: Final = "10 %, -0.1 from the start, default weights"
"""Names of training settings whose second threshold is -0.1 from the start, instead of following the published schedule."""


@dataclass(frozen=True)
class TrainingRuns:
    """Runs of one training setting on one data set.

    `accuracy` has the test accuracies [seed][epoch], 0 to 1; `dropped` is the mean number of dropped spikes per sample and step; `origin`
    is the learning rate, device, date and commit.
    """

    accuracy: tuple[tuple[float, ...], ...]
    dropped: float
    origin: str

    @property
    def mean(self) -> tuple[float, ...]:
        """Mean accuracy over seeds after each epoch, in %."""
        return tuple(100 * fmean(epoch) for epoch in zip(*self.accuracy, strict=True))

    @property
    def spread(self) -> tuple[str, ...]:
        """Smallest and largest accuracy after each epoch, as text."""
        return tuple(spread_note(epoch, len(self.accuracy)) for epoch in zip(*self.accuracy, strict=True))


def sparse_runs(data: str) -> dict[str, TrainingRuns]:
    """Return the runs of each training setting on a data set, tested on its test samples, with hidden layers of :data:`WIDTHS`.

    A setting may have runs with several learning rates and factors of the regulariser. Of these recipes, the one with the most seeds is
    used, and of equals the last one in the file.
    """
    stored = stored_results("sparse-training")
    groups: dict[str, dict[tuple[str, str], list[dict[str, Any]]]] = {}
    for row in stored.rows:
        setting = row.get("setting", {})
        if row["data"] == data and not setting.get("validation", False) and setting.get("widths", WIDTHS) == WIDTHS:
            recipe = str(setting.get("rate", "0.001")), str(setting.get("pressure", 3.0))
            groups.setdefault(row["training"], {}).setdefault(recipe, []).append(row)
    runs = {}
    for training, by_recipe in groups.items():
        (rate, _), rows = max(reversed(by_recipe.items()), key=lambda item: len(item[1]))
        epochs = min(len(row["accuracy"]) for row in rows)
        accuracy = tuple(tuple(row["accuracy"][:epochs]) for row in rows)
        runs[training] = TrainingRuns(accuracy, fmean(row["dropped"] for row in rows), f"learning rate {rate}; {stored.origin}")
    return runs
