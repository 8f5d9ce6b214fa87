"""``snnc inspect``: the report of a compiled project."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from snnc.commands.common import ProjectArgument
from snnc.console import result


def inspect(
    folder: ProjectArgument,
    format_: Annotated[str, typer.Option("--format", help="html, text, json or svg.")] = "html",
    output: Annotated[Path | None, typer.Option("-o", "--output", help="The file to write.")] = None,
) -> None:
    """Draw where everything of a project lies, what it costs and why.

    Example: snnc inspect build/ --format html -o report.html
    """
    from snnc.reporting import report

    text = report(folder, format_)
    if output is None and format_ in ("html", "svg"):
        output = folder / f"report.{format_}"
    if output is None:
        result(text.rstrip("\n"))
        return
    from snnc.files import whole_file

    with whole_file(output) as stream:
        stream.write(text.encode())
    result(f"wrote {output}")
