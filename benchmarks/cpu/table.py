"""Rows of the suite as a table for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from snnc.benchmarks.cpu.rows import Row, grouped, mebibytes, relative_to_snnc, summary_lines, workload_name

_RIGHT: Final = ("ms", "p10", "p90", "turns ±", "samples/s", "time/snnc", "peak MiB", "mem/snnc", "loss")
"""Columns of numbers, which are aligned to the right."""


def lines(rows: Sequence[Row], left_out: Sequence[Row], machine: Mapping[str, str], width: int | None = None) -> list[str]:
    """Return the rows by workload, the fastest first, then omitted entries with reasons, the machine, and notes on the columns."""
    heads = {head: head in _RIGHT for head in ("workload", "engine", "mode", "variant", *_RIGHT)}
    text = grouped(rows, heads, lambda row: _cells(rows, row), width)
    notes = {f"{r['engine']}: {r['note']}": None for r in rows if r["note"]}
    text += ["", *summary_lines(rows), ""] if rows else []
    text += [*notes]
    text += [f"left out: {workload_name(r)}, {r['engine']} {r['mode']}: {r['reason']}" for r in left_out]
    text.append("; ".join(f"{key} {value}" for key, value in machine.items()))
    text.append(
        "all numbers are measured. ms: median of one training step; turns ±: half the difference between the medians of the slowest and "
        "the fastest turn; time/snnc, mem/snnc: divided by the value of snnc's row of mode exact; peak MiB: minus the resident memory "
        "after the framework was loaded"
    )
    return text


def _cells(rows: Sequence[Row], row: Row) -> list[str]:
    spread = 50 * row["ms_spread"] / row["ms_median"]
    return [
        workload_name(row),
        row["engine"],
        row["mode"],
        row["variant"],
        *(f"{row[key]:.4g}" for key in ("ms_median", "ms_p10", "ms_p90")),
        f"{spread:.0f} %",
        f"{row['samples_per_s']:,.0f}",
        _ratio(relative_to_snnc(rows, row, "ms_median")),
        f"{mebibytes(row['peak_mb']):,.0f}",
        _ratio(relative_to_snnc(rows, row, "peak_mb")),
        f"{row['loss']:.4f}",
    ]


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.2f} x"
