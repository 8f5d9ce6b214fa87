"""The dataflow graph, drawn in layers by stage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from snnc.compiler.plan import Plan
from snnc.inspect.palette import RELAY, layer_colour

WIDTH, HEIGHT, GAP_X, GAP_Y, MARGIN = 168, 54, 48, 26, 24
MOST: Final = 26
"""Characters of a name that fit in a box."""


@dataclass(frozen=True)
class Box:
    """A node: position, texts, colour, and the number of its population (-1 for inputs)."""

    x: float
    y: float
    title: str
    full: str
    detail: str
    colour: str
    layer: int


@dataclass(frozen=True)
class Arrow:
    """An edge as an SVG path, with its label's place."""

    path: str
    x: float
    y: float
    text: str


def draw_flow(plan: Plan, program: Mapping[str, Any]) -> dict[str, Any]:
    """Place boxes in columns by stage (inputs first) and arrows between them; arrows back run in an arc above."""
    labels = {i["id"]: i["label"] for i in program.get("inputs", [])}
    models = {p["id"]: p["model"] for p in program.get("populations", [])}
    columns: dict[int, int] = {}
    boxes: dict[str, Box] = {}

    def place(name: str, column: int, title: str, detail: str, colour: str, layer: int) -> None:
        row = columns.get(column, 0)
        columns[column] = row + 1
        x, y = MARGIN + column * (WIDTH + GAP_X), MARGIN + 30 + row * (HEIGHT + GAP_Y)
        boxes[name] = Box(x, y, title if len(title) <= MOST else title[: MOST - 1] + "…", title, detail, colour, layer)

    inputs = dict.fromkeys(b.source for b in plan.buses if b.source not in {p.id for p in plan.populations})
    for name in inputs:
        width = next(b.width for b in plan.buses if b.source == name)
        place(name, 0, labels.get(name, name), f"input, {width:,}", RELAY, -1)
    for index, p in enumerate(plan.populations):
        detail = f"{models.get(p.id, '') or 'neurons'} {p.neurons:,} · stage {p.stage}"
        place(p.id, 1 + p.stage, p.label, detail, layer_colour(index), index)
    buses = {b.id: b for b in plan.buses}
    arrows = [
        _arrow(boxes[buses[c.bus].source], boxes[c.target], f"delay {c.delay}" if c.delay else "")
        for c in plan.connections
        if c.target in boxes
    ]
    high = max(columns.values())
    return {
        "boxes": list(boxes.values()),
        "arrows": arrows,
        "width": 2 * MARGIN + (max(columns) + 1) * (WIDTH + GAP_X) - GAP_X,
        "height": 2 * MARGIN + 46 + high * (HEIGHT + GAP_Y) - GAP_Y,
        "least": round(0.7 * (2 * MARGIN + (max(columns) + 1) * (WIDTH + GAP_X) - GAP_X)),
        "box_width": WIDTH,
        "box_height": HEIGHT,
    }


def _arrow(source: Box, target: Box, text: str) -> Arrow:
    middle = HEIGHT / 2
    if source is target:
        x, y = source.x + WIDTH / 2, source.y
        return Arrow(f"M {x + 26} {y} C {x + 40} {y - 34}, {x - 40} {y - 34}, {x - 26} {y - 3}", x, y - 29, text)
    if target.x > source.x:
        x0, y0, x1, y1 = source.x + WIDTH, source.y + middle, target.x - 3, target.y + middle
        bend = (x1 - x0) / 2
        lift = 0.0 if target.x - source.x < WIDTH + GAP_X + 1 else -HEIGHT
        path = f"M {x0} {y0} C {x0 + bend} {y0 + 1.4 * lift}, {x1 - bend} {y1 + 1.4 * lift}, {x1} {y1}"
        return Arrow(path, (x0 + x1) / 2, (y0 + y1) / 2 + lift - 6, text)
    x0, y0, x1, y1 = source.x + WIDTH / 2, source.y + HEIGHT, target.x + WIDTH / 2, target.y + HEIGHT + 3
    path = f"M {x0} {y0} C {x0} {y0 + 44}, {x1} {y1 + 44}, {x1} {y1}"
    return Arrow(path, (x0 + x1) / 2, max(y0, y1) + 30, text)
