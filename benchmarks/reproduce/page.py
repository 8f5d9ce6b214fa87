"""Write the page, the drawings, and the CSV and JSON files of a reproduction."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from markupsafe import Markup

from snnc.benchmarks.reproduce.chart import draw, page_templates
from snnc.benchmarks.reproduce.claims import verdicts
from snnc.benchmarks.reproduce.figure import Figure, Point, Results
from snnc.data.whole_files import write_text

PAGE: Final = "index.html"
COLUMNS: Final = ("series", "kind", "x", "y", "note")


def write_reproduction(folder: Path, figures: Sequence[Figure], results: Results, about: dict[str, Any]) -> Path:
    """Write each figure as SVG, CSV and JSON, the claims as JSON, and the page; return the page's path.

    Files of an earlier run are replaced. `about` has ``version``, ``date``, ``quick``, and the numbers ``done`` and ``wanted`` of rows.
    """
    view = []
    for figure in figures:
        points = figure.points(results)
        drawing = (figure.picture(results) if figure.picture else "") or draw(figure, points)
        write_text(folder / f"{figure.name}.svg", drawing)
        write_text(folder / f"{figure.name}.csv", _csv(points))
        data: dict[str, Any] = {"name": figure.name, "paper": figure.paper, "title": figure.title, "x": figure.x, "y": figure.y}
        data["points"] = [asdict(p) for p in points]
        write_text(folder / f"{figure.name}.json", json.dumps(data, indent=1, allow_nan=False) + "\n")
        view.append({"figure": figure, "drawing": Markup(drawing), "points": points})
    claims = verdicts(results)
    write_text(folder / "claims.json", json.dumps(claims, indent=1) + "\n")
    page = folder / PAGE
    write_text(page, page_templates().get_template("page.html.jinja").render(figures=view, claims=claims, about=about))
    return page


def _csv(points: Sequence[Point]) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([p.series, p.kind, p.x, "" if p.y is None else repr(p.y), p.note] for p in points)
    return stream.getvalue()
