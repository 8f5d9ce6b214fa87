"""Draw the map of the code from its imports: ``python docs/site/house.py`` writes docs/map.md and docs/images/house.svg.

Needs grimp, a dependency of import-linter. The map shows the packages (or modules) of the four subpackages of snnc: api, frontends, backends and
compiler. In the code, these four are *areas* and what they contain are *packages*.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tempfile
from html import escape
from pathlib import Path

import networkx as nx
from stage import ROOT, link_package

AREAS = ("api", "frontends", "backends", "compiler")
COLOURS = {"api": "#dbe7f6", "frontends": "#fbe6c5", "backends": "#d9f0e3", "compiler": "#f3dcea"}
PRINT_IMPORTS = """
import grimp, json
graph = grimp.build_graph("snnc", exclude_type_checking_imports=True, cache_dir=None)
print(json.dumps([[a, b] for a in graph.modules for b in graph.find_modules_directly_imported_by(a)]))
"""
"""Program that prints the imports between modules; it runs in a separate process, which sees only this checkout."""
BOX, GAP, HIGH, LINE = 126, 12, 26, 30
"""Pixels of the picture: width of a box, gap between boxes, height of a box, and height of the lines between two rows."""
PAGE = """# A map of the code

For developers: the packages of the code, their purposes and their imports. [Decision 26](decisions/0026-rooms.md) gives the reasons for this division.

![The four subpackages of snnc. The packages of api import those of frontends, backends and compiler; frontends and backends import compiler; nothing imports a subpackage drawn above it. The tables below list every package and what it imports.](images/house.svg)

Each coloured area is a subpackage of `snnc`. A line inside an area leads from a package down to one that it imports; it is omitted if other lines already connect the two. Arrows between areas are imports, too. `docs/site/house.py`
writes the picture and the tables from the imports in the code; import contracts in `pyproject.toml` enforce the directions.
"""


def area_of(module: str) -> tuple[str, str]:
    """Return the area of a module, and its package in this area; ``snnc.data``, for example, is a package of the area api."""
    parts = module.split(".")[1:]
    if parts[:1] and parts[0] in AREAS:
        return parts[0], parts[1] if len(parts) > 1 else "(package)"
    return "api", parts[0] if parts else "(package)"


def imports() -> list[tuple[str, str]]:
    """Return all imports between modules of snnc in this checkout, as (importing module, imported module)."""
    with tempfile.TemporaryDirectory() as folder:
        link_package(Path(folder))
        done = subprocess.run([sys.executable, "-P", "-c", PRINT_IMPORTS], env={"PYTHONPATH": folder}, capture_output=True, text=True, check=True)
    return [(a, b) for a, b in json.loads(done.stdout) if not b.startswith("snnc.benchmarks")]


def packages(module_imports: list[tuple[str, str]]) -> nx.DiGraph:
    """Return a graph of the packages, as (area, package), with an edge from each package to each package that it imports."""
    graph = nx.DiGraph()
    for a, b in module_imports:
        one, other = area_of(a), area_of(b)
        graph.add_nodes_from((one, other))
        if one != other:
            graph.add_edge(one, other)
    graph.remove_nodes_from([n for n in graph if n[1] in ("(package)", "__main__", "templates", "benchmarks")])
    return graph


def purpose(area: str, package: str) -> str:
    """Return the first paragraph of a package's docstring, as Markdown."""
    place = ROOT / area / package
    file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return re.sub(r":\w+:(?=`)", "", " ".join(text.split("\n\n")[0].split())).replace("``", "`").rstrip(".")


def levels(graph: nx.DiGraph) -> list[list[str]]:
    """Return the packages of one area by level, highest first; each package is above all packages that it imports."""
    height = {}
    for package in reversed(list(nx.lexicographical_topological_sort(graph))):
        height[package] = max((height[other] + 1 for other in graph.successors(package)), default=0)
    return [sorted(package for package in height if height[package] == level) for level in range(max(height.values()), -1, -1)]


def draw_area(area: str, graph: nx.DiGraph, left: float, top: float, width: float) -> tuple[list[str], float]:
    """Return the SVG lines of one area, and its height in pixels."""
    inside = nx.DiGraph()
    inside.add_nodes_from(package for f, package in graph if f == area)
    inside.add_edges_from((a, b) for (f, a), (g, b) in graph.edges if f == g == area)
    rows, places = levels(inside), {}
    high = len(rows) * (HIGH + LINE) + 8
    for n, row in enumerate(rows):
        start = left + (width - len(row) * (BOX + GAP) + GAP) / 2
        for k, package in enumerate(row):
            places[package] = (start + k * (BOX + GAP), top + 28 + n * (HIGH + LINE))
    lines = [f'<rect x="{left}" y="{top}" width="{width}" height="{high}" rx="8" fill="{COLOURS[area]}"/>']
    lines.append(f'<text x="{left + 12}" y="{top + 20}" class="area">{area}</text>')
    for a, b in sorted(nx.transitive_reduction(inside).edges):
        (x, y), (u, v) = places[a], places[b]
        lines.append(f'<path d="M{x + BOX / 2:.0f} {y + HIGH:.0f} C{x + BOX / 2:.0f} {y + HIGH + 16:.0f} {u + BOX / 2:.0f} {v - 16:.0f} {u + BOX / 2:.0f} {v:.0f}"/>')
    for package, (x, y) in sorted(places.items()):
        lines.append(f'<rect x="{x:.0f}" y="{y:.0f}" width="{BOX}" height="{HIGH}" rx="4" class="package"/>')
        lines.append(f'<text x="{x + BOX / 2:.0f}" y="{y + 17:.0f}" text-anchor="middle">{escape(package)}</text>')
    return lines, high


def picture(graph: nx.DiGraph) -> str:
    """Return the map as SVG: api on top, frontends and backends in the middle, the compiler at the bottom."""
    wide = 1200.0
    parts, top, places = [], 10.0, {}
    for row in (("api",), ("frontends", "backends"), ("compiler",)):
        lowest, left = 0.0, 10.0
        for area in row:
            width = {1: wide, 2: 380.0 if area == "frontends" else wide - 380.0 - 20}[len(row)]
            lines, high = draw_area(area, graph, left, top, width)
            parts += lines
            places[area] = (left + width / 2, top, top + high)
            lowest, left = max(lowest, high), left + width + 20
        top += lowest + 44
    between = sorted({(a[0], b[0]) for a, b in graph.edges if a[0] != b[0]})
    for a, b in between:
        if (a, b) != ("api", "compiler"):  # this arrow would cross the areas in between
            x = places[b if a == "api" else a][0]
            y, v = places[a][2] + 3, places[b][1] - 8
            parts.append(f'<line class="between" x1="{x:.0f}" y1="{y:.0f}" x2="{x:.0f}" y2="{v:.0f}" marker-end="url(#tip)"/>')
    style = "text{font:12px sans-serif;fill:#222}.area{font-weight:bold;font-size:14px}.package{fill:white;stroke:#667}path{fill:none;stroke:#889;stroke-width:1}.between{stroke:#444;stroke-width:3}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide + 20:.0f} {top - 34:.0f}" role="img">\n<title>The packages of snnc, and their imports</title>\n'
        f'<style>{style}</style>\n<defs><marker id="tip" viewBox="0 0 8 8" refX="4" refY="4" markerWidth="4" markerHeight="4" orient="auto"><path d="M0 0L8 4L0 8z" style="fill:#444;stroke:none"/></marker></defs>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def page(graph: nx.DiGraph) -> str:
    """Return the page, with a table for each area."""
    lines = [PAGE]
    for area in AREAS:
        lines += [f"## {area}", "", "| package | what it is | imports |", "|---|---|---|"]
        for node in sorted(n for n in graph if n[0] == area):
            others = sorted(f"{'' if f == area else f + '.'}{package}" for f, package in graph.successors(node))
            lines.append(f"| `{node[1]}` | {purpose(*node).replace('|', '/')} | {', '.join(others)} |")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    graph = packages(imports())
    (ROOT / "docs" / "map.md").write_text(page(graph), encoding="utf-8")
    (ROOT / "docs" / "images" / "house.svg").write_text(picture(graph), encoding="utf-8")
