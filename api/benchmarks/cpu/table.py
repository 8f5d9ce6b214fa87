"""Rows of the suite as a table for a terminal."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any, Final

from snnc.benchmarks.cpu.rows import over_own, same
from snnc.benchmarks.cpu.summary import summary_lines

Row = Mapping[str, Any]
WIDTH: Final = 128
"""Columns where nobody tells how many there are."""
_RIGHT: Final = ("ms", "p10", "p90", "turns ±", "samples/s", "time/snnc", "peak MB", "mem/snnc", "loss")


def lines(rows: Sequence[Row], left_out: Sequence[Row], machine: Mapping[str, str], width: int | None = None) -> list[str]:
    """Print the rows by workload, the fastest first, then what was left out and why, the machine, and how to read the columns."""
    from rich.console import Console

    console = Console(file=io.StringIO(), width=max(width or WIDTH, WIDTH), color_system=None, highlight=False)
    if rows:
        console.print(_table(rows))
    assert isinstance(console.file, io.StringIO)
    text = [line.rstrip() for line in console.file.getvalue().splitlines()]
    notes = {f"{r['engine']}: {r['note']}": None for r in rows if r["note"]}
    text += ["", *summary_lines(rows), ""] if rows else []
    text += [*notes]
    text += [f"left out: {_name(r)}, {r['engine']} {r['mode']}: {r['reason']}" for r in left_out]
    text.append("; ".join(f"{key} {value}" for key, value in machine.items()))
    text.append(
        "all numbers are measured. ms: median of one training step; turns ±: between the medians of the fastest and the slowest turn; "
        "time/snnc, mem/snnc: over snnc's row of mode exact; peak MB: over what was resident when the framework was loaded"
    )
    return text


def _table(rows: Sequence[Row]) -> Any:
    from rich.table import Table

    table = Table(show_edge=False, pad_edge=False, box=None)
    for head in ("workload", "engine", "mode", "variant", *_RIGHT):
        table.add_column(head, justify="right" if head in _RIGHT else "left", no_wrap=True)
    seen: list[str] = []
    for row in rows:
        if _name(row) in seen:
            continue
        if seen:
            table.add_section()
        seen.append(_name(row))
        for one in sorted((r for r in rows if same(r, row)), key=lambda r: float(r["ms_median"])):
            table.add_row(*_cells(rows, one))
    return table


def _cells(rows: Sequence[Row], row: Row) -> list[str]:
    spread = 50 * row["ms_spread"] / row["ms_median"]
    return [
        _name(row),
        row["engine"],
        row["mode"],
        row["variant"],
        *(f"{row[key]:.4g}" for key in ("ms_median", "ms_p10", "ms_p90")),
        f"{spread:.0f} %",
        f"{row['samples_per_s']:,.0f}",
        _ratio(over_own(rows, row, "ms_median")),
        f"{row['peak_mb']:,.0f}",
        _ratio(over_own(rows, row, "peak_mb")),
        f"{row['loss']:.4f}",
    ]


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.2f} x"


def _name(row: Row) -> str:
    return f"{row['workload']} {100 * row['density']:g} %"
