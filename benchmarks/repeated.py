"""Derive rows from measured rows of the same network under another name, or on a machine that differs only in its clock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from snnc.benchmarks.nets import same_network
from snnc.benchmarks.suites import SuiteTask
from snnc.compiler.machines import load_target
from snnc.compiler.machines.target import Target, differ_in_clock_only

_MILLISECONDS: Final = ("step_ms", "predicted_ms", "predicted_ms_full")


def repeated(rows: Sequence[dict[str, Any]], task: SuiteTask) -> dict[str, Any] | None:
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
    host streams. ``same_plan_as`` of the derived row names the original machine; compile time and memory are copied.
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
