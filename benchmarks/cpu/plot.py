"""Rows of the suite as a chart: time and memory of each engine over the workloads, as self-contained SVG."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from snnc.benchmarks.cpu.engine import ENTRIES
from snnc.benchmarks.cpu.rows import Row, mebibytes, relative_to_snnc, workload_name
from snnc.benchmarks.reproduce.chart import logarithmic
from snnc.exploring.plot import GAP, HEIGHT, LEFT, TOP, WIDTH, Mark, Panel, render
from snnc.report.pictures.palette import LAYERS, mixed

EngineMode = tuple[str, str]
"""An engine and its mode, which share a colour."""


def draw(rows: Sequence[Row], title: str = "training steps on a CPU", kind: str = "measured") -> str:
    """Return a plot of the time of a step, peak memory, and time relative to snnc's exact mode, with logarithmic axes and a mark per row.

    `kind` is the note below the drawing: how the numbers were obtained, such as ``measured``.
    """
    drawn = set(map(_engine_mode, rows))
    known = dict.fromkeys([*((e.engine, e.mode) for e in ENTRIES), *map(_engine_mode, rows)])
    engine_modes = [one for one in known if one in drawn]
    colours = _colours(engine_modes)
    panels = [
        _panel(0, "ms per training step, median", rows, colours, lambda row: float(row["ms_median"])),
        _panel(1, "peak memory minus that of the loaded framework, MiB", rows, colours, lambda row: mebibytes(row["peak_mb"])),
        _panel(2, "time / time of snnc in mode exact", rows, colours, lambda row: relative_to_snnc(rows, row, "ms_median")),
    ]
    return render(title, "", panels, [(" ".join(one), colour) for one, colour in colours.items()], kind)


def _engine_mode(row: Row) -> EngineMode:
    return str(row["engine"]), str(row["mode"])


def _colours(engine_modes: Sequence[EngineMode]) -> dict[EngineMode, str]:
    """Return a colour for each engine, and paler ones for its further modes."""
    engines = list(dict.fromkeys(engine for engine, _ in engine_modes))
    colours: dict[EngineMode, str] = {}
    for engine, mode in engine_modes:
        further = sum(other == engine for other, _ in colours)
        colours[engine, mode] = mixed(LAYERS[engines.index(engine) % len(LAYERS)], 1 - 0.25 * min(further, 3))
    return colours


def _panel(index: int, title: str, rows: Sequence[Row], colours: Mapping[EngineMode, str], read: Callable[[Row], float | None]) -> Panel:
    left, engine_modes = LEFT + index * (WIDTH + GAP), list(colours)
    columns = list(dict.fromkeys((r["workload"], r["density"]) for r in rows))
    known = [(row, max(value, 1e-3)) for row in rows if (value := read(row)) is not None]
    up = logarithmic([value for _, value in known], TOP + HEIGHT, -HEIGHT)
    width = WIDTH / max(1, len(columns))

    def place(row: Row) -> float:
        """Place the marks of one column next to each other, in the order of the legend."""
        aside = (engine_modes.index(_engine_mode(row)) + 0.5) / len(engine_modes) - 0.5
        return round(left + width * (columns.index((row["workload"], row["density"])) + 0.5 + 0.8 * aside), 1)

    marks = tuple(Mark(place(row), round(up.place(value), 1), colours[_engine_mode(row)], _title(row), True) for row, value in known)
    names = tuple((round(left + width * (n + 0.5), 1), text) for n, text in enumerate(_names(columns)))
    return Panel(title, left, up.ticks, names, left + WIDTH, left + WIDTH / 2, (), marks, "workload, input density")


def _names(columns: Sequence[tuple[str, float]]) -> list[str]:
    names = [name for name, _ in columns]
    return [f"{name} {100 * density:g}%" if names.count(name) > 1 else name for name, density in columns]


def _title(row: Row) -> str:
    where = f"{workload_name(row)}, {row['engine']} {row['mode']} ({row['variant']})"
    return f"{where}: {row['ms_median']:.4g} ms, {row['samples_per_s']:,.0f} samples/s, {mebibytes(row['peak_mb']):,.0f} MiB"
