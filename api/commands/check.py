"""``snnc check``: what snnc understands of a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from snnc.console import result, result_json


def check(
    model: Annotated[Path, typer.Argument(help="An .onnx file, or a folder that snnc compile wrote.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    dt: Annotated[float | None, typer.Option(help="Seconds a step, for models in continuous time.")] = None,
    dialect: Annotated[str | None, typer.Option(help="Whose reading of a NIR file to follow.")] = None,
) -> None:
    """Show what snnc understands of a model: layers, neurons with their equations, recurrences, assumptions.

    Example: snnc check model.onnx --json
    """
    from snnc.compiler.verify import verify
    from snnc.describe import describe, to_text
    from snnc.loading import is_project, load_model, load_project

    graph = load_project(model)[0] if is_project(model) else load_model(model, dt=dt, dialect=dialect)
    verify(graph)
    found = describe(graph)
    if as_json:
        result_json(found)
        return
    for line in to_text(found):
        result(line)
