"""``snnc inspect``: write the report of a compiled project, a plan, or the profile of an emulated program."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from snnc.cli.console import result

DRAWN = ("html", "svg", "png")
"""Formats that are written to a file even without -o."""


def inspect(
    folder: Annotated[
        Path, typer.Argument(help="A folder that snnc compile wrote, a plan.json, or a profile of snnc emulate.", metavar="DIR")
    ],
    format_: Annotated[
        str | None, typer.Option("--format", help="html (default; for a profile: text), text, json, svg, png, graphml, dot or trace.")
    ] = None,
    compare: Annotated[Path | None, typer.Option("--compare", help="A second project or plan.json, shown next to the first.")] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="The file to write.")] = None,
) -> None:
    """Write the report of a project: placement, predicted cost, bottleneck, memory and traffic.

    html is a page that works offline; svg and png are maps of the tiles; json contains everything the page shows; graphml and dot are the
    dataflow graph; trace is the timeline for chrome://tracing and Perfetto.

    For a project without tiles (cpu, cuda, reference) the formats are html, text and json; for the profile of an emulated program, text,
    json and trace.

    Example: snnc inspect build/ --format html -o report.html
    """
    from snnc.data.whole_files import check_output, write_bytes
    from snnc.driver.reporting import report, usual_format

    check_output(output, folder, compare)
    chosen = format_ or usual_format(folder)
    content = report(folder, chosen, compare)
    if output is None and chosen in DRAWN:
        name = "report" if compare is None else "comparison"
        output = folder / f"{name}.{chosen}" if folder.is_dir() else folder.with_suffix(f".{name}.{chosen}")
    if output is None:
        result(content.decode("utf-8").rstrip("\n"))
        return
    write_bytes(output, content)
    result(f"wrote {output}")
