"""Rows of measurements as a table for a terminal, a section for each workload, sorted by speed."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from snnc.benchmarks.cpu.rows import same

Row = Mapping[str, Any]
WIDTH: Final = 128
"""Columns where nobody tells how many there are."""


def grouped(
    rows: Sequence[Row], heads: Mapping[str, bool], name: Callable[[Row], str], cells: Callable[[Row], Sequence[str]], width: int | None
) -> list[str]:
    """Print rows; `heads` tells of each column whether it stands to the right."""
    from rich.console import Console
    from rich.table import Table

    console = Console(file=io.StringIO(), width=max(width or WIDTH, WIDTH), color_system=None, highlight=False)
    table = Table(show_edge=False, pad_edge=False, box=None)
    for head, right in heads.items():
        table.add_column(head, justify="right" if right else "left", no_wrap=True)
    seen: list[str] = []
    for row in rows:
        if name(row) in seen:
            continue
        if seen:
            table.add_section()
        seen.append(name(row))
        for one in sorted((r for r in rows if same(r, row)), key=lambda r: float(r["ms_median"])):
            table.add_row(*cells(one))
    if rows:
        console.print(table)
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]
