"""The suites ``mapping`` and ``compile`` of ``snnc bench``: their rows, each of which is measured in a separate process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from snnc.benchmarks.nets import benchmark, names, same_network
from snnc.benchmarks.patterns import matching
from snnc.benchmarks.subprocesses import ProcessError, run_module
from snnc.compiler.machines import load_target
from snnc.compiler.machines.target import Target, differ_in_clock_only
from snnc.compiler.tiles.baselines.partition import has_metis
from snnc.errors import BenchError

SUITES: Final = ("mapping", "compile")
CLOCKS: Final = ("gc200", "bow")
"""Machines that differ only in their clocks; the published log records no clock, so its networks are mapped onto both."""
SECONDS: Final = 900.0
"""Time limit for a row, in seconds."""
_MILLISECONDS: Final = ("step_ms", "predicted_ms", "predicted_ms_full")
"""Keys of a row that scale with the period of the clock."""


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
    Raise BenchError if the suite is unknown, or a pattern matches no net.
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

    Of the suites ``multi_neuron`` and ``multi_ipu``: only the nets with an activity of 5 % and, for n neurons per tile, 3 n / 2 hidden
    layers per IPU.
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


def derived_row(rows: Sequence[dict[str, Any]], task: SuiteTask) -> dict[str, Any] | None:
    """Return the row of `task`, derived from a row of the same network, or of a machine with another clock; None if it must be measured."""
    if task.target is not None:
        return at_another_clock(rows, task)
    same = (same_network(task.net), task.strategy)
    for row in rows:
        if row["net"] != task.net and (same_network(row["net"]), row["strategy"]) == same:
            return row | {"net": task.net, "same_plan_as": row["net"]}
    return None


def at_another_clock(rows: Sequence[dict[str, Any]], task: SuiteTask) -> dict[str, Any] | None:
    """Return the row of `task`, derived from that of a machine that differs only in its clock; None without such a row.

    Links and streaming memory have rates per second, which do not follow the clock, so only plans on one chip are used; no row includes
    transfers from the host. ``same_plan_as`` of the derived row names the original machine; compile time and memory are copied.
    """
    if task.target is None:
        return None
    machine = load_target(task.target)
    for row in rows:
        same_task = (row["net"], row["strategy"]) == (task.net, task.strategy) and row.get("ipus") == 1 and row["fits"]
        if same_task and differ_in_clock_only(load_target(row["target"]), machine):
            return _scaled(row, machine)
    return None


def _scaled(row: dict[str, Any], machine: Target) -> dict[str, Any]:
    clock = machine.clock_hz / 1e9
    ratio = row["clock_ghz"] / clock
    scaled = row | {name: row[name] * ratio for name in _MILLISECONDS if row.get(name) is not None}
    if "predicted_ms_band" in row:
        scaled["predicted_ms_band"] = [None if value is None else value * ratio for value in row["predicted_ms_band"]]
    return scaled | {"target": machine.name, "clock_ghz": clock, "same_plan_as": row["target"]}
