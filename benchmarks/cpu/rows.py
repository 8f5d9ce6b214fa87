"""Rows of results of the CPU and CUDA benchmarks: their contents, ratios between them, a summary, and their layout as a table."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

import numpy as np

from snnc.benchmarks.cpu.engine import EAGER
from snnc.benchmarks.cpu.oracle import ReferenceStep
from snnc.benchmarks.cpu.process import EngineProcess
from snnc.benchmarks.cpu.workloads import Workload

Row = Mapping[str, Any]
WIDTH: Final = 128
"""Default and minimum width of a table, in characters."""


def workload_name(row: Row) -> str:
    """Return the workload of a row and its input density."""
    return f"{row['workload']} {100 * row['density']:g} %"


def mebibytes(megabytes: float) -> float:
    """Convert a row's megabytes, 10^6 bytes, to MiB."""
    return megabytes * 1e6 / 2**20


def row(workload: Workload, runner: EngineProcess, first: ReferenceStep, cosine: float) -> dict[str, Any]:
    """Return the row of an engine.

    ``ms_*`` are milliseconds: the median and percentiles of all timed steps. Steps are timed in turns; ``turn_ms`` has the median of each
    turn, and ``ms_spread`` is the difference between the largest and the smallest of these medians. ``peak_mb`` is the peak memory, minus
    the resident memory after the framework was loaded; ``device_mb`` is the device memory of the process, and ``joules`` the energy of the
    device per step (None if unknown). ``first_step_s`` is the time from the start of the build to the end of the first step, including
    compilation; compilers may use caches on disk. ``loss`` is that of the first step.

    ``activity`` (spikes per hidden neuron and step) and ``conditions`` are computed by the reference. ``precision`` is the format of the
    factors of products. In the checked step, ``gradient_error`` is the largest relative error of a gradient, and ``gradient_cosine`` the
    cosine between the exact gradient and the one that the engine must compute (1 unless its gradients are windowed).
    """
    process, ms = runner.process, np.array(runner.ms)
    middle = float(np.median(ms))
    return {
        "workload": workload.name,
        "density": workload.density,
        "batch": workload.batch,
        "steps": workload.steps,
        "engine": process.entry.engine,
        "mode": process.entry.mode,
        "precision": process.entry.precision,
        "variant": process.variant,
        "ms_median": middle,
        "ms_p10": float(np.percentile(ms, 10)),
        "ms_p90": float(np.percentile(ms, 90)),
        "turn_ms": list(runner.medians),
        "ms_spread": max(runner.medians) - min(runner.medians),
        "samples_per_s": 1e3 * workload.batch / middle,
        "peak_mb": runner.peak_mb,
        "device_mb": runner.device_mb,
        "joules": runner.joules,
        "first_step_s": runner.first_step_s,
        "loss": runner.loss,
        "activity": first.activity,
        "conditions": asdict(first.conditions),
        "gradient_error": runner.gradient_error,
        "gradient_cosine": cosine,
        "steps_timed": len(ms),
        "turns": len(runner.medians),
        "versions": process.versions,
        "note": process.entry.note,
    }


def relative_to_snnc(rows: Sequence[Mapping[str, Any]], one: Mapping[str, Any], key: str) -> float | None:
    """Return the value of `key` in row `one`, divided by its value in snnc's row for the same workload and precision, if there is one."""
    ours = _ours(rows, one)
    return None if ours is None or not ours[key] else float(one[key]) / float(ours[key])


def same(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """Return whether two rows have the same workload, density and precision; a row that names no precision is float32."""
    keys = (("workload", ""), ("density", 0.0), ("precision", "float32"))
    return all(a.get(key, default) == b.get(key, default) for key, default in keys)


def _ours(rows: Sequence[Mapping[str, Any]], one: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the row of snnc with which `one` is compared: that of mode exact, or of the mode named after the precision."""
    modes = ("exact", one.get("precision", "exact"))
    return next((r for r in rows if r["engine"] == "snnc" and r["mode"] in modes and same(r, one)), None)


def ratios_by_turn(rows: Sequence[Mapping[str, Any]], one: Mapping[str, Any]) -> list[float]:
    """Return the time of `one` divided by snnc's for each turn; empty if the two rows were not timed together."""
    ours = _ours(rows, one)
    if ours is None or ours.get("group") != one.get("group") or not ours.get("turn_ms") or len(ours["turn_ms"]) != len(one["turn_ms"]):
        return []
    return [other / snnc for other, snnc in zip(one["turn_ms"], ours["turn_ms"], strict=True) if snnc]


def grouped(rows: Sequence[Row], heads: Mapping[str, bool], cells: Callable[[Row], Sequence[str]], width: int | None) -> list[str]:
    """Return rows as the lines of a table, with a section per workload and precision, sorted by speed.

    `heads` maps column titles to whether they are aligned to the right.
    """
    from rich.console import Console
    from rich.table import Table

    console = Console(file=io.StringIO(), width=max(width or WIDTH, WIDTH), color_system=None, highlight=False)
    table = Table(show_edge=False, pad_edge=False, box=None)
    for head, right in heads.items():
        table.add_column(head, justify="right" if right else "left", no_wrap=True)
    begun: list[Row] = []
    for row in rows:
        if any(same(row, other) for other in begun):
            continue
        if begun:
            table.add_section()
        begun.append(row)
        for one in sorted((r for r in rows if same(r, row)), key=lambda r: float(r["ms_median"])):
            table.add_row(*cells(one))
    if rows:
        console.print(table)
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def summary(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Compare each row of snnc with the other frameworks on its workload, in the same precision.

    ``best`` and ``least`` are the names of the fastest other framework and of the one with the smallest peak memory. ``times_snntorch``,
    ``times_eager`` and ``times_best`` are snnc's speed relative to snnTorch's fastest variant, to snnTorch without ``torch.compile``, and
    to ``best``; ``memory_of_best`` and ``memory_of_least`` are snnc's peak memory divided by theirs. A value is None if there is no
    framework to compare with.
    """
    summaries = []
    for ours in (row for row in rows if row["engine"] == "snnc"):
        others = [row for row in rows if row["engine"] != "snnc" and same(row, ours)]
        best = min(others, key=lambda row: float(row["ms_median"]), default=None)
        least = min(others, key=lambda row: float(row["peak_mb"]), default=None)
        snntorch, eager = (
            next((row for row in others if row["engine"] == "snntorch" and row["mode"] in modes), None)
            for modes in (("exact", ours.get("precision")), (EAGER,))
        )
        summaries.append(
            {key: ours[key] for key in ("workload", "density", "mode")}
            | {"precision": ours.get("precision", "float32")}
            | {"times_snntorch": _over(snntorch, ours, "ms_median"), "times_eager": _over(eager, ours, "ms_median")}
            | {"times_best": _over(best, ours, "ms_median")}
            | {"best": best and best["engine"], "memory_of_best": _over(ours, best, "peak_mb")}
            | {"least": least and least["engine"], "memory_of_least": _over(ours, least, "peak_mb")}
        )
    return summaries


def summary_lines(rows: Sequence[Row]) -> list[str]:
    """Return the summary as lines of text; rows without another framework are omitted."""
    lines = []
    for one in summary(rows):
        if one["best"] is None:
            continue
        parts = [] if one["times_snntorch"] is None else [f"{one['times_snntorch']:.1f} x snnTorch"]
        parts += [] if one["times_eager"] is None else [f"{one['times_eager']:.1f} x snnTorch, eager"]
        parts.append(f"{one['times_best']:.1f} x the best other ({one['best']})")
        memory = [] if one["memory_of_best"] is None else [f"memory {one['memory_of_best']:.2f} of {one['best']}"]
        if one["least"] != one["best"] and one["memory_of_least"] is not None:
            memory.append(f"{one['memory_of_least']:.2f} of {one['least']}, the smallest")
        lines.append(f"{one['workload']} {100 * one['density']:g} %, snnc {one['mode']}: " + ", ".join([*parts, *memory]))
    return lines


def _over(a: Row | None, b: Row | None, key: str) -> float | None:
    return None if a is None or b is None or not b[key] else float(a[key]) / float(b[key])
