"""``snnc check``: what snnc understands of a model."""

from __future__ import annotations

from snnc.commands.common import DialectOption, DtOption, JsonOption, ModelArgument
from snnc.console import result, result_json


def check(model: ModelArgument, as_json: JsonOption = False, dt: DtOption = None, dialect: DialectOption = None) -> None:
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
