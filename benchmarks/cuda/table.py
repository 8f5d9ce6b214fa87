"""Rows of the suite cuda as a table for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from snnc.benchmarks.cpu.rows import Row, grouped, mebibytes, ratios_by_turn, relative_to_snnc, workload_name
from snnc.benchmarks.cuda.command import MEASURED

_MIN_WIDTH: Final = 170
"""Minimum width of the table in columns of the terminal."""
_RIGHT: Final = ("ms", "p10", "p90", "time/snnc", "p10-p90", "bound ms", "over bound", "device MiB", "loss", "error")
"""Columns of numbers, which are aligned to the right."""


def lines(rows: Sequence[Row], left_out: Sequence[Row], machine: Mapping[str, str], width: int | None = None) -> list[str]:
    """Return the rows by workload, the fastest first, then how variants were chosen, what was not measured and why, and notes."""
    heads = {head: head in (*_RIGHT, "B") for head in ("workload", "B", "precision", "engine", "mode", "variant", *_RIGHT)}
    text = grouped(rows, heads, lambda row: _cells(rows, row), max(width or 0, _MIN_WIDTH))
    text += [*dict.fromkeys(f"{r['engine']}: {r['note']}" for r in rows if r["note"])]
    text += [_way(row) for row in rows if row["chosen"]["trial_ms"] or row["chosen"]["left_out"]]
    text += [f"left out: {workload_name(r)}, {r['engine']} {r['mode']}: {r['reason']}" for r in left_out]
    text.append("; ".join(f"{key} {value}" for key, value in machine.items()))
    text.append(
        f"ms: median of a training step, {machine['times']}; p10-p90: of time/snnc, turn by turn; "
        "bound ms: computed for float32 (docs/explanation/gpu-bounds.md); over bound: ms divided by it; "
        "error: largest relative error of a gradient in the checked step; "
        "device MiB: measured, the process's share of the device's memory"
    )
    return text


def _cells(rows: Sequence[Row], row: Row) -> list[str]:
    over = relative_to_snnc(rows, row, "ms_median")
    measured = row["times"] == MEASURED
    return [
        workload_name(row),
        str(row["batch"]),
        row["precision"],
        row["engine"],
        row["mode"],
        row["variant"],
        *(f"{row[key]:.4g}" for key in ("ms_median", "ms_p10", "ms_p90")),
        "" if over is None or not measured else f"{over:.2f} x",
        _spread(ratios_by_turn(rows, row)) if measured else "",
        "" if row["bound_ms"] is None else f"{row['bound_ms']:.3g}",
        f"{row['ms_median'] / row['bound_ms']:.1f} x" if measured and row["bound_ms"] is not None else "",
        "" if row["device_mb"] is None else f"{mebibytes(row['device_mb']):,.0f}",
        f"{row['loss']:.4f}",
        f"{row['gradient_error']:.1e}",
    ]


def _spread(ratios: Sequence[float]) -> str:
    if not ratios:
        return ""
    low, high = np.percentile(ratios, (10, 90))
    return f"{low:.2f}-{high:.2f}"


def _way(row: Row) -> str:
    chosen = row["chosen"]
    others = [f"{way} {ms:.4g} ms" for way, ms in chosen["trial_ms"].items() if way != row["variant"]]
    aside = [f"{way} left out ({reason})" for way, reason in chosen["left_out"].items()]
    return f"{workload_name(row)}, {row['engine']} {row['mode']}: {row['variant']} by {chosen['by']}; {', '.join([*others, *aside])}"
