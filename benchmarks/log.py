"""The timing log of the published program (:mod:`snnc.benchmarks.published`), as data: ``logged.toml``."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib.resources import files
from typing import Any


@dataclass(frozen=True)
class LoggedRun:
    """One point of the log.

    Attributes
    ----------
    name
        Name of the benchmark.
    hidden, capacity
        Number of neurons of each hidden layer, and its capacity K, in ids per sample and step.
    ms
        Most frequent time of a training step over the epochs, in whole milliseconds; two values if each occurs in at least a quarter of the
        epochs.
    epochs
        Number of epochs for each time of a training step in milliseconds; the first epoch is omitted.
    compile_s
        Duration of the compilation and the first epoch, in seconds.
    """

    name: str
    hidden: tuple[int, ...]
    capacity: tuple[int, ...]
    ms: tuple[int, ...]
    epochs: dict[int, int]
    compile_s: int

    @property
    def logged_ms(self) -> float:
        """Mean of :attr:`ms`."""
        return sum(self.ms) / len(self.ms)


def logged_runs() -> tuple[LoggedRun, ...]:
    """Return the 12 points, in the order of the log."""
    data: dict[str, Any] = tomllib.loads(files("snnc.benchmarks").joinpath("logged.toml").read_text())
    return tuple(_run(run) for run in data["run"])


def _run(run: dict[str, Any]) -> LoggedRun:
    return LoggedRun(
        name=run["name"],
        hidden=tuple(run["hidden"]),
        capacity=tuple(run["capacity"]),
        ms=tuple(run["ms"]),
        epochs={int(ms): count for ms, count in run["epochs"].items()},
        compile_s=run["compile_s"],
    )
