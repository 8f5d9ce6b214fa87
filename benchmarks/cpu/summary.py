"""Compare snnc with the other engines, in one line for each workload and mode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from snnc.benchmarks.cpu.engine import EAGER
from snnc.benchmarks.cpu.rows import Row, same


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
