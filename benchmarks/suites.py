"""The suites ``mapping`` and ``compile`` of ``snnc bench``: their rows, each of which is measured in a separate process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from snnc.benchmarks.nets import benchmark, names
from snnc.benchmarks.patterns import matching
from snnc.benchmarks.subprocesses import ProcessError, run_module
from snnc.compiler.tiles.baselines.partition import has_metis
from snnc.errors import BenchError

SUITES: Final = ("mapping", "compile")
CLOCKS: Final = ("gc200", "bow")
"""Machines that differ only in their clocks; the log records no clock, so its networks are mapped onto both."""
SECONDS: Final = 900.0
"""Time limit for a row, in seconds."""


@dataclass(frozen=True)
class SuiteTask:
    """One row to measure: `net` mapped by `strategy` to `target` (None: the benchmark's own machine), and emitted if `emit`."""

    net: str
    strategy: str
    target: str | None
    emit: bool


def strategies() -> tuple[str, ...]:
    """Return the compared strategies; without pymetis, "greedy" (snnc's own partitioner) replaces METIS."""
    return ("snnc", "published", "linear", "random", "metis" if has_metis() else "greedy")


def tasks(suite: str, patterns: str = "*") -> tuple[SuiteTask, ...]:
    """Return the rows of a suite whose net matches one of `patterns` (:func:`~snnc.benchmarks.patterns.matching`).

    ``"*"`` selects the default nets of the suite; other patterns select among all benchmarks.
    Raise BenchError if there is no such suite, or a pattern matches no net.
    """
    if suite not in SUITES:
        raise BenchError(f"there is no suite {suite!r}; there are {', '.join(SUITES)}, cpu, cuda and paper.")
    known = tuple(dict.fromkeys(names() if patterns != "*" else _usual(suite)))
    nets = matching(patterns, known, lambda name: (name,), "benchmark", "names look like w1, logged-h2-a1, shd-x16-n8-a5")
    if suite == "compile":
        return tuple(SuiteTask(net, "snnc", None, True) for net in nets)
    return tuple(
        SuiteTask(net, strategy, target, strategy == "snnc")
        for net in nets
        for target in (CLOCKS if net.startswith("logged-") else (None,))
        for strategy in strategies()
    )


def _usual(suite: str) -> tuple[str, ...]:
    """Return the default nets of a suite, the quick ones first.

    Of the suites ``multi_neuron`` and ``multi_ipu``: only the nets with an activity of 5 %, and with three layers for every two neurons
    that a tile holds.
    """
    both = (*names("multi_neuron"), *names("multi_ipu"))
    grids = tuple(name for name in both if "-a5" in name and "-b2" not in name and "-b4" not in name)
    if suite == "compile":
        return ("w1", "w2", *(name for name in grids if "-x" in name and "-B" not in name))
    return (*names("everyday"), *names("logged"), *grids)


def run(task: SuiteTask, seconds: float = SECONDS) -> dict[str, Any]:
    """Measure one row in a separate process; if the process fails, the returned row contains the error."""
    arguments = [task.net, task.strategy, *([task.target] if task.target else []), *(["--emit"] if task.emit else [])]
    try:
        return run_module("snnc.benchmarks.measure", arguments, seconds)
    except ProcessError as error:
        target = task.target or benchmark(task.net).target
        failed = {"net": task.net, "strategy": task.strategy, "target": target, "fits": False, "step_cycles": None, "bound_cycles": None}
        return failed | {"error": str(error), "code": ""}
