"""``snnc reproduce``: reproduce the figures and claims of the two papers that snnc is based on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from snnc.cli.console import note, result


def reproduce(
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="Folder for the page, drawings and numbers.")] = Path(
        "reproduction"
    ),
    only: Annotated[str, typer.Option("--only", metavar="PATTERNS", help="Only figures with these names: 'activity,scaling'.")] = "*",
    quick: Annotated[bool, typer.Option("--quick", help="Fewer points of each figure: minutes instead of half an hour.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Keep the results in the folder and compute the missing ones.")] = False,
    listing: Annotated[bool, typer.Option("--list", help="Print the names of the figures, and exit.")] = False,
) -> None:
    """Draw the figures of the two papers that snnc is based on and check their claims: one page, with the numbers as CSV and JSON.

    Predicted, emulated, measured and published numbers never share a series. Times of GPUs are read from a file of earlier measurements,
    with device and date; times of IPUs are predicted. Each row of results is computed in its own process and stored at once;
    --resume continues an interrupted run.

    Example: snnc reproduce --quick --output reproduction
    """
    from snnc.benchmarks.reproduce.command import chosen_figures
    from snnc.benchmarks.reproduce.command import reproduce as run

    if listing:
        for figure in chosen_figures(only):
            result(f"{figure.name:18} {figure.title} (arXiv {figure.paper})")
        return
    result(str(run(output, only, quick=quick, resume=resume, report=note)))
