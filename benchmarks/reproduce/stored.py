"""Read stored results of long measurements from ``benchmarks/results``."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from importlib.resources import files
from typing import Any


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
