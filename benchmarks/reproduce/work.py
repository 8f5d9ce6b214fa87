"""One row in a process of its own: ``python -m snnc.benchmarks.reproduce.work WORK ARGUMENTS``; the last line of stdout is its result."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

from snnc.benchmarks.matched import predict_matched
from snnc.benchmarks.measure import measure
from snnc.benchmarks.reproduce.emulated import emulate_small
from snnc.benchmarks.reproduce.figure import Row
from snnc.benchmarks.reproduce.neuron_models import predict_neuron_model

WORK: Final[Mapping[str, Callable[..., dict[str, Any]]]] = {
    "plan": measure,
    "matched": predict_matched,
    "neuron": predict_neuron_model,
    "emulate": emulate_small,
}
"""What a row can do; each takes the row's arguments by name and returns JSON types."""


def run_row(row: Row, seconds: float) -> dict[str, Any]:
    """Run `row` in a process of its own, for at most `seconds`; return its result, or one with ``failed`` and the reason."""
    command = [sys.executable, "-m", "snnc.benchmarks.reproduce.work", row.work, json.dumps(dict(row.given))]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return {"failed": f"took longer than {seconds:.0f} s"}
    printed = done.stdout.splitlines()
    if done.returncode or not printed:
        return {"failed": (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]}
    found: dict[str, Any] = json.loads(printed[-1])
    return found


if __name__ == "__main__":
    print(json.dumps(WORK[sys.argv[1]](**json.loads(sys.argv[2])), allow_nan=False))
