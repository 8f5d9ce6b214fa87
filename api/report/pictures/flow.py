"""Lay out the dataflow graph in columns by stage; if there are many columns, they continue in another band below."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from snnc.report.limits import amount
from snnc.report.pictures.palette import RELAY, layer_colour
from snnc.report.subject import Subject

WIDTH, HEIGHT, GAP_X, GAP_Y, MARGIN = 178, 54, 46, 24, 24
"""Size of a box, gaps between boxes, and margin, in pixels."""
BAND: Final = 58
"""Space between bands, in pixels."""
ASPECT: Final = 1.9
"""Preferred ratio of width to height of a drawing with many columns."""
MIN_COLUMNS: Final = 3
"""Minimum number of columns in a band, except the last band."""
UNBROKEN: Final = 4
"""Maximum number of columns that are always drawn in a single band."""
MAX_NAME: Final = 19
"""Maximum number of characters of a name in a box."""


class Node(NamedTuple):
    """An input or layer: id, column, title, detail, colour, and the index of the layer (-1 for inputs)."""

    id: str
    column: int
    title: str
    detail: str
    colour: str
    layer: int


@dataclass(frozen=True)
class Box:
    """A node as drawn: position in pixels, shortened and full title, detail, colour, and the index of its layer (-1 for inputs)."""

    x: float
    y: float
    title: str
    full: str
    detail: str
    colour: str
    layer: int


@dataclass(frozen=True)
class Arrow:
    """An edge as an SVG path, with the position of its label; `source` and `target` are layer indices (-1 for inputs)."""

    path: str
    x: float
    y: float
    text: str
    hint: str
    delayed: bool
    source: int
    target: int


def draw_flow(subject: Subject) -> dict[str, Any]:
    """Return the positions of boxes and arrows; hints show the bytes that all connections between two boxes move together."""
    plan, nodes = subject.plan, _nodes(subject)
    columns = _columns(nodes)
    tall = max(len(column) for column in columns)
    across = _across(len(columns), tall)
    high = tall * (HEIGHT + GAP_Y) - GAP_Y + BAND
    boxes: dict[str, Box] = {}
    for number, column in enumerate(columns):
        band, place = divmod(number, across)
        top = MARGIN + 30 + band * high + (tall - len(column)) * (HEIGHT + GAP_Y) / 2
        for row, node in enumerate(column):
            short = node.title if len(node.title) <= MAX_NAME else node.title[: MAX_NAME - 1] + "…"
            x, y = MARGIN + place * (WIDTH + GAP_X), top + row * (HEIGHT + GAP_Y)
            boxes[node.id] = Box(x, y, short, node.title, node.detail, node.colour, node.layer)
    buses = {b.id: b for b in plan.buses}
    known = {c["id"]: c for c in subject.program.get("connections", [])}
    arrows = []
    for c in plan.connections:
        if c.target in boxes:
            source, target = boxes[buses[c.bus].source], boxes[c.target]
            label = known.get(c.id, {}).get("label", c.id)
            hint = f"{label}: {source.full} to {target.full}, {_moved(subject, buses[c.bus].source, c.target)}"
            path, text_x, text_y = _path(source, target)
            text = f"delay {c.delay}" if c.delay else ""
            arrows.append(Arrow(path, round(text_x, 1), round(text_y, 1), text, hint, c.delay > 0, source.layer, target.layer))
    shown = min(across, len(columns))
    return {
        "boxes": list(boxes.values()),
        "arrows": arrows,
        "width": 2 * MARGIN + shown * (WIDTH + GAP_X) - GAP_X,
        "height": 2 * MARGIN + 20 + math.ceil(len(columns) / across) * high,
        "box_width": WIDTH,
        "box_height": HEIGHT,
    }


def _nodes(subject: Subject) -> list[Node]:
    plan = subject.plan
    models = {p["id"]: p["model"] for p in subject.program.get("populations", [])}
    layers = {p.id for p in plan.populations}
    nodes = []
    for name in dict.fromkeys(b.source for b in plan.buses if b.source not in layers):
        bus = next(b for b in plan.buses if b.source == name)
        what = "spikes" if bus.kind == "events" else "values"
        nodes.append(Node(name, 0, subject.names.get(name, name), f"input, {bus.width:,} {what}", RELAY, -1))
    for index, p in enumerate(plan.populations):
        detail = f"{(models.get(p.id, '') or 'neurons')[:11]} {p.neurons:,} · stage {p.stage}"
        nodes.append(Node(p.id, 1 + p.stage, p.label, detail, layer_colour(index), index))
    return nodes


def _columns(nodes: list[Node]) -> list[list[Node]]:
    """Group nodes by column; split columns with more than 6 and more than sqrt(nodes) nodes."""
    tall = max(6, math.ceil(math.sqrt(len(nodes))))
    columns = []
    for number in sorted({node.column for node in nodes}):
        column = [node for node in nodes if node.column == number]
        columns += [column[at : at + tall] for at in range(0, len(column), tall)]
    return columns


def _across(columns: int, tall: int) -> int:
    """Return the number of columns per band for which the ratio of width to height of the drawing is closest to :data:`ASPECT`."""
    if columns <= UNBROKEN:
        return columns
    high = tall * (HEIGHT + GAP_Y) + BAND

    def distance(across: int) -> float:
        return abs(math.log(across * (WIDTH + GAP_X) / (math.ceil(columns / across) * high) / ASPECT))

    return min(range(MIN_COLUMNS, columns + 1), key=distance)


def _moved(subject: Subject, source: str, target: str) -> str:
    nodes = subject.traffic.nodes
    total = sum(f.bytes for f in subject.traffic.flows if nodes[f.source] == source and nodes[f.target] == target)
    return f"{amount(total)} a step (predicted, all connections between the two)"


def _path(source: Box, target: Box) -> tuple[str, float, float]:
    if source is target:
        x, y = source.x + WIDTH / 2, source.y
        return f"M {x + 26} {y} C {x + 40} {y - 34}, {x - 40} {y - 34}, {x - 26} {y - 3}", x, y - 29
    if target.x > source.x:
        x0, y0, x1, y1 = source.x + WIDTH, source.y + HEIGHT / 2, target.x - 3, target.y + HEIGHT / 2
        bend = (x1 - x0) / 2
        lift = 0.0 if target.x - source.x < WIDTH + GAP_X + 1 or abs(y1 - y0) > HEIGHT else -HEIGHT
        path = f"M {x0} {y0} C {x0 + bend} {y0 + 1.4 * lift}, {x1 - bend} {y1 + 1.4 * lift}, {x1} {y1}"
        return path, (x0 + x1) / 2, (y0 + y1) / 2 + lift - 6
    x0, y0, x1 = source.x + WIDTH / 2, source.y + HEIGHT, target.x + WIDTH / 2
    if target.y > source.y + HEIGHT:
        x1, y1 = target.x - 3, target.y + HEIGHT / 2
        path = f"M {x0} {y0} v 8 q 0 6 -6 6 H {x1 - 8} q -6 0 -6 6 V {y1 - 6} q 0 6 6 6 H {x1}"
        return path, (x0 + x1) / 2, y0 + 26
    y1 = target.y + HEIGHT + 3
    return f"M {x0} {y0} C {x0} {y0 + 44}, {x1} {y1 + 44}, {x1} {y1}", (x0 + x1) / 2, max(y0, y1) + 30
