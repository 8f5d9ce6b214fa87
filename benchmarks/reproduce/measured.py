"""Read earlier measurements: training steps on GPUs and CPUs from ``measured_gpu.toml``, long runs from ``benchmarks/results``."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from snnc.benchmarks.conditions import Conditions


@dataclass(frozen=True)
class MeasuredStep:
    """The measured time of a training step."""

    net: str
    """Name of the network in ``snnc bench --suite cuda`` or ``--suite paper``."""
    program: str
    """The measured program: ``"snnc"``, the name of a framework, or ``"prototype"``, a hand-written program for this network."""
    ms: float
    """Median time of a training step, in milliseconds."""
    device: str
    date: str
    commit: str
    conditions: Conditions
    """The weights, data and activity of the measurement."""
    processor: str
    """``"GPU"`` or ``"CPU"``."""
    joules: float | None = None
    """Energy of the device per training step, from NVML; None if it was not measured."""

    @property
    def origin(self) -> str:
        """Device, date and commit, for the notes of data points in figures."""
        return f"{self.device}, {self.date}, commit {self.commit}"


def measured_steps() -> tuple[MeasuredStep, ...]:
    """Return all measured steps."""
    data = tomllib.loads(files("snnc.benchmarks.reproduce").joinpath("measured_gpu.toml").read_text())
    problems = {name: Conditions(**problem) for name, problem in data["problem"].items()}
    return tuple(
        MeasuredStep(
            **{key: run[key] for key in ("device", "date", "commit", "processor")},
            **{key: value for key, value in step.items() if key != "problem"},
            conditions=problems[step.get("problem", step["net"])],
        )
        for run in data["run"]
        for step in run["step"]
    )


@dataclass(frozen=True)
class StoredResults:
    """The results in a file, and their origin."""

    rows: tuple[dict[str, Any], ...]
    """The objects of the file, one from each line."""
    origin: str
    """Device, date and commit of snnc, for the notes of data points in figures."""


def stored_results(name: str) -> StoredResults:
    """Return the results of the file that table `name` of ``stored.toml`` describes."""
    about = tomllib.loads(files("snnc.benchmarks.reproduce").joinpath("stored.toml").read_text())[name]
    text = files("snnc.benchmarks").joinpath("results", about["file"]).read_text(encoding="utf-8")
    rows = tuple(json.loads(line) for line in text.splitlines())
    return StoredResults(rows, f"{about['device']}, {about['date']}, commit {about['commit']}")
