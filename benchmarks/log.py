"""The timing log of the published program (:mod:`snnc.benchmarks.published`), as data: ``logged.toml``."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True)
class LoggedRun:
    """One point of the log."""

    name: str
    hidden: tuple[int, ...]
    """Number of neurons of each hidden layer."""
    capacity: tuple[int, ...]
    """Capacity K of each hidden layer, in ids per sample and step."""
    ms: tuple[int, ...]
    """Most frequent time of a training step over the epochs, in whole milliseconds; two values if each occurs in at least a quarter of the
    epochs."""
    epochs: dict[int, int]
    """Number of epochs for each time of a training step in milliseconds; the first epoch is omitted."""

    @property
    def logged_ms(self) -> float:
        """Mean of :attr:`ms`."""
        return sum(self.ms) / len(self.ms)


def logged_runs() -> tuple[LoggedRun, ...]:
    """Return the 12 points, in the order of the log."""
    data = tomllib.loads(files("snnc.benchmarks").joinpath("logged.toml").read_text())
    return tuple(
        LoggedRun(
            name=run["name"],
            epochs={int(ms): count for ms, count in run["epochs"].items()},
            **{key: tuple(run[key]) for key in ("hidden", "capacity", "ms")},
        )
        for run in data["run"]
    )
