"""``snnc bench``: measurements that compare strategies and follow compile time."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from snnc.console import note, result


def bench(
    suite: Annotated[str, typer.Option("--suite", help="mapping: strategies compared; compile: seconds and memory.")] = "mapping",
    nets: Annotated[str, typer.Option("--nets", metavar="PATTERN", help="Only nets of these names: 'logged-*', w1, 'shd-x*'.")] = "*",
    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the rows as JSON; - for stdout.")] = None,
    plot: Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="With --suite compile: draw the growth, .svg.")] = None,
    listing: Annotated[bool, typer.Option("--list", help="Print the names of the nets that would run, and stop.")] = False,
) -> None:
    """Map the benchmark networks by snnc and by baselines, and compare predicted steps with their bounds, with each other and with the log.

    Every row runs in a process of its own, so that its seconds and its peak memory are its own; one that fails is a row with an error.

    Example: snnc bench --suite mapping --nets 'logged-*' --json rows.json
    """
    from snnc.benchmarks.suites import run, tasks
    from snnc.benchmarks.table import compile_lines, mapping_lines

    chosen = tasks(suite, nets)
    _check_plot(suite, plot)
    if listing:
        for name in dict.fromkeys(task.net for task in chosen):
            result(name)
        return
    rows: list[dict[str, Any]] = []
    try:
        for number, task in enumerate(chosen, 1):
            rows.append(run(task))
            note(f"{number}/{len(chosen)} {task.net} {task.strategy}: {_short(rows[-1])}")
    finally:
        _write(json_file, rows)
    if plot is not None:
        _draw(plot, rows)
    if str(json_file) == "-":
        return
    for line in compile_lines(rows) if suite == "compile" else mapping_lines(rows):
        result(line)


def _short(row: dict[str, Any]) -> str:
    if row.get("step_cycles") is None:
        return str(row.get("error", "no prediction"))
    return f"{row['step_cycles']:,.0f} cycles predicted, compiled in {row['compile_s']:.2f} s"


def _write(json_file: Path | None, rows: list[dict[str, Any]]) -> None:
    import json

    from snnc.console import result_json
    from snnc.files import whole_file

    if str(json_file) == "-":
        result_json({"rows": rows})
    elif json_file is not None:
        with whole_file(json_file) as stream:
            stream.write((json.dumps({"rows": rows}, indent=1, allow_nan=False) + "\n").encode())


def _check_plot(suite: str, plot: Path | None) -> None:
    from snnc.errors import BenchError

    if plot is not None and (suite != "compile" or plot.suffix.lower() != ".svg"):
        raise BenchError(f"--plot {plot} draws the growth of --suite compile, as .svg; snnc explore draws predictions.")


def _draw(plot: Path, rows: list[dict[str, Any]]) -> None:
    from snnc.benchmarks.growth import draw_growth
    from snnc.files import whole_file

    with whole_file(plot) as stream:
        stream.write(draw_growth(rows).encode())
