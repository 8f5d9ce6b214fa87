"""Summaries of a graph, one line per layer, as text and as an HTML table: what a terminal or a notebook shows for a graph."""

from __future__ import annotations

from html import escape
from typing import Final, NamedTuple

import networkx as nx

from snnc.compiler.errors import SnncError
from snnc.compiler.ir.dataflow_order import dataflow_order
from snnc.compiler.ir.graph import Graph, Output, Population
from snnc.compiler.ir.operation_text import description, parameter_counts
from snnc.compiler.ir.shapes import node_shapes, port_map, size

MAX_ROWS: Final = 24
"""Maximum number of layers shown; the summary ends with the number of omitted layers."""
MAX_NAME: Final = 40
"""Maximum number of characters of a name that are shown."""


class OperationRow(NamedTuple):
    """The row of one operation."""

    name: str
    what: str
    shape: str
    parameters: int


def graph_text(graph: Graph, title: str = "Graph") -> str:
    """Return a headline and one line per layer."""
    rows, omitted = _rows(graph)
    widths = [max(map(len, column)) for column in zip(*(row[:3] for row in rows), strict=True)]
    lines = [f"{title} {headline(graph)}"]
    for row in rows:
        parameters = f"{row.parameters:,}" if row.parameters else ""
        cells = (f"{text:{width}}" for text, width in zip(row[:3], widths, strict=True))
        lines.append(f"  {'  '.join(cells)}  {parameters}".rstrip())
    return "\n".join([*lines, *([f"  … and {omitted:,} more"] if omitted else [])])


def graph_html(graph: Graph, title: str = "Graph") -> str:
    """Return the lines of :func:`graph_text` as an HTML table; names are escaped."""
    rows, omitted = _rows(graph)
    heads = "".join(f'<th style="text-align:left">{head}</th>' for head in ("layer", "what it is", "shape", "parameters"))
    body = [
        "<tr>"
        + "".join(f'<td style="text-align:left">{escape(cell)}</td>' for cell in row[:3])
        + f'<td style="text-align:right">{format(row.parameters, ",") if row.parameters else ""}</td></tr>'
        for row in rows
    ]
    if omitted:
        body.append(f'<tr><td colspan="4" style="text-align:left">… and {omitted:,} more</td></tr>')
    caption = f'<caption style="text-align:left">{escape(title)} {escape(headline(graph))}</caption>'
    return f"<table>{caption}<thead><tr>{heads}</tr></thead><tbody>{''.join(body)}</tbody></table>"


def headline(graph: Graph) -> str:
    """Return the name and the sizes in one line: ``'digits': 110 neurons in 2 populations, 7,514 parameters, 25 steps``."""
    populations = [operation for _, operation in graph.of_type(Population)]
    neurons = sum(size(p.shape) for p in populations)
    parameters = sum(parameter_counts(graph.operation(name))[0] for name in graph.names)
    groups = f"{len(populations)} population{'' if len(populations) == 1 else 's'}"
    steps = "" if graph.steps is None else f", {graph.steps:,} steps"
    return f"{plain(graph.name)!r}: {neurons:,} neurons in {groups}, {parameters:,} parameters{steps}"


def plain(text: str, longest: int = MAX_NAME) -> str:
    """Return `text` with unprintable characters, such as terminal control characters, replaced, and cut to `longest` characters."""
    shown = "".join(c if c.isprintable() else "�" for c in text)
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def _rows(graph: Graph) -> tuple[list[OperationRow], int]:
    try:
        order = dataflow_order(graph)
    except nx.NetworkXUnfeasible:  # an invalid graph, with a cycle without delay: keep the order of insertion
        order = [name for name in graph.names if not isinstance(graph.operation(name), Output)]
    try:
        shapes = node_shapes(port_map(graph))
    except (SnncError, nx.NetworkXUnfeasible):
        shapes = {}
    return [_row(graph, name, shapes) for name in order[:MAX_ROWS]], max(0, len(order) - MAX_ROWS)


def _row(graph: Graph, name: str, shapes: dict[str, tuple[int, ...]]) -> OperationRow:
    operation = graph.operation(name)
    shape = getattr(operation, "shape", None) if isinstance(operation, Population) else shapes.get(name)
    text = "?" if shape is None else "x".join(map(str, shape)) or "1"
    return OperationRow(plain(name), plain(description(operation), 2 * MAX_NAME), text, parameter_counts(operation)[0])
