"""Read earlier measurements of training steps on GPUs and CPUs from ``measured_gpu.toml``."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib.resources import files

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
        """Device, date and commit, for the note of a point."""
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
