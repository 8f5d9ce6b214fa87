"""``snnc reproduce``: run the computations and measurements (*rows*) for figures that reproduce two papers, and write the page.

The page is written at the start, and again after each row that completes a figure.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from threading import Lock
from typing import Any, Final

from markupsafe import Markup

from snnc.backends.native.processors import processors
from snnc.benchmarks.patterns import matching
from snnc.benchmarks.reproduce.chart import draw, page_templates
from snnc.benchmarks.reproduce.claims import verdicts
from snnc.benchmarks.reproduce.figure import Figure, Point, Results, Row, why_missing
from snnc.benchmarks.reproduce.figures import FIGURES
from snnc.benchmarks.reproduce.work import TIMED, run_row
from snnc.data.whole_files import write_text
from snnc.errors import BenchError

SECONDS: Final = 1800.0
"""Time limit of a row, in seconds."""
ROWS_FILE: Final = "rows.jsonl"
"""File of results: one JSON object per line, appended when a row ends, so that an interrupted run can be resumed."""
PAGE: Final = "index.html"
COLUMNS: Final = ("series", "kind", "x", "y", "note")


class RowsFile:
    """Results by row key, on disk and in memory. With `resume`, a file of an earlier run is continued, without its failed rows.

    Raise BenchError if there are results and `resume` is false, or if the file cannot be read or written.
    """

    def __init__(self, folder: Path, resume: bool) -> None:
        self.path = folder / ROWS_FILE
        self.results: dict[str, Mapping[str, Any]] = {}
        try:
            text = self.path.read_text(encoding="utf-8") if self.path.exists() else ""
        except (OSError, UnicodeDecodeError) as error:
            raise BenchError(f"{str(self.path)!r} cannot be read: {error}.") from None
        if text and not resume:
            raise BenchError(
                f"{str(self.path)!r} contains the results of an earlier run; add --resume to continue it, or name another folder."
            )
        for line in text.splitlines():
            # The last line of a run that was killed may be incomplete.
            with suppress(ValueError, KeyError, TypeError):
                entry = json.loads(line)
                if "failed" not in entry["result"]:
                    self.results[entry["row"]] = entry["result"]
        self._end_line = bool(text) and not text.endswith("\n")

    def add(self, key: str, result: Mapping[str, Any]) -> None:
        """Append one result and flush it to disk."""
        self.results[key] = result
        try:
            with self.path.open("a", encoding="utf-8") as stream:
                stream.write(("\n" if self._end_line else "") + json.dumps({"row": key, "result": dict(result)}, allow_nan=False) + "\n")
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as error:
            raise BenchError(f"{str(self.path)!r} cannot be written: {error.strerror or error}.") from None
        self._end_line = False


def chosen_figures(only: str) -> tuple[Figure, ...]:
    """Return the figures whose name matches one of the patterns."""
    names = ", ".join(figure.name for figure in FIGURES)
    return matching(only, FIGURES, lambda figure: (figure.name,), "figure", f"there are {names}")


def reproduce(folder: Path, only: str, *, quick: bool, resume: bool, report: Callable[[str], None], jobs: int = 0) -> Path:
    """Run the missing rows, each in a separate process, update the page as they finish, and return its path.

    `only` has patterns of figure names, separated by commas; `quick` computes fewer points of each figure. With `resume`, the results in
    `folder` are kept, and rows that failed run again. `report` is called with a line of text after each row. `jobs` rows run at the same
    time (0: one for each processor), but rows that measure a time run alone. Raise BenchError if `folder` cannot be used, if it has results
    and `resume` is false, or if a pattern matches no figure.
    """
    figures = chosen_figures(only)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BenchError(f"{str(folder)!r} cannot be created: {error.strerror}.") from None
    store = RowsFile(folder, resume)
    wanted = {row.key: row for figure in figures for row in figure.rows(quick)}
    page = _page(folder, figures, store, list(wanted), quick)
    for row in _finished([row for key, row in wanted.items() if key not in store.results], store, jobs or processors()):
        report(f"{sum(key in store.results for key in wanted)}/{len(wanted)} {row.work}: {_outcome(row, store)}")
        complete = [figure for figure in figures if all(one.key in store.results for one in figure.rows(quick))]
        if any(row.key == one.key for figure in complete for one in figure.rows(quick)):
            page = _page(folder, figures, store, list(wanted), quick)
    return page


def _finished(rows: Sequence[Row], store: RowsFile, jobs: int) -> Iterator[Row]:
    """Run rows, `jobs` at a time; rows that measure a time run afterwards, one by one. Yield each row once its result is stored."""
    write_lock = Lock()

    def run_and_store(row: Row) -> Row:
        result = run_row(row, SECONDS)
        with write_lock:
            store.add(row.key, result)
        return row

    pool = ThreadPoolExecutor(jobs)
    try:
        for done in as_completed([pool.submit(run_and_store, row) for row in rows if row.work not in TIMED]):
            yield done.result()
    finally:
        pool.shutdown(cancel_futures=True)
    yield from (run_and_store(row) for row in rows if row.work in TIMED)


def _page(folder: Path, figures: Sequence[Figure], store: RowsFile, wanted: Sequence[str], quick: bool) -> Path:
    done = sum(key in store.results for key in wanted)
    about = {"version": version("snnc"), "date": f"{datetime.now(UTC):%Y-%m-%d}", "quick": quick, "done": done, "wanted": len(wanted)}
    return write_reproduction(folder, figures, store.results, about)


def _outcome(row: Row, store: RowsFile) -> str:
    result = store.results[row.key]
    what = " ".join(str(value) for value in row.arguments.values())
    return f"{what}: {result['step_ms']:.4g} ms" if result.get("step_ms") else f"{what}: {why_missing(result) or 'done'}"


def write_reproduction(folder: Path, figures: Sequence[Figure], results: Results, about: dict[str, Any]) -> Path:
    """Write each figure as SVG, CSV and JSON, verdicts on the papers' claims as JSON, and the page; return the page's path.

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
