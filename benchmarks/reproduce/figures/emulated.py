"""Figure: predicted and emulated cycles of small networks, with and without events."""

from __future__ import annotations

from typing import Final

from snnc.benchmarks.reproduce.figure import Figure, Kind, Point, Results, Row, why_missing

ACTIVITIES: Final = (0.005, 0.02, 0.1, 0.3)
QUICK: Final = (0.02, 0.1)
CHIPS: Final = (1, 4)
PROGRAMS: Final = {"snnc's sparse program": False, "snnc's program without events": True}
"""Programs by title of the series; the value is the argument `dense` of their rows."""
KINDS: Final[tuple[Kind, ...]] = ("predicted", "emulated")


def emulated_row(activity: float, *, dense: bool, chips: int) -> Row:
    """Return the row of one activity, program and machine."""
    return Row("emulate", {"activity": activity, "dense": dense, "chips": chips})


def rows(quick: bool) -> tuple[Row, ...]:
    """Return a row for each program and activity on one chip, and for each program at one activity on four chips."""
    activities = QUICK if quick else ACTIVITIES
    one = [emulated_row(activity, dense=dense, chips=1) for activity in activities for dense in PROGRAMS.values()]
    return (*one, *(emulated_row(QUICK[1], dense=dense, chips=4) for dense in PROGRAMS.values()))


def points(results: Results) -> tuple[Point, ...]:
    """Return the points of one line per program, machine and kind."""
    points = []
    for chips in CHIPS:
        for program, dense in PROGRAMS.items():
            for activity in ACTIVITIES:
                result = results.get(emulated_row(activity, dense=dense, chips=chips).key)
                if result is None:
                    continue
                for kind in KINDS:
                    cycles = result.get(f"{kind}_cycles")
                    note = why_missing(result) or f"{result['target']}, fullest tile {result[f'{kind}_bytes']:,} bytes ({kind})"
                    series = f"{program}, {chips} chip{'s' * (chips > 1)} ({kind})"
                    points.append(Point(series, kind, 100 * activity, cycles, note, {"chips": chips, "dense": dense}))
    return tuple(points)


FIGURE: Final = Figure(
    "emulated",
    "Small networks: predicted and emulated steps",
    "Cycles per training step of networks of 200-96-96-10 neurons, T = 20, batch 12, on 48 tiles per chip. The emulator runs the emitted "
    "program and counts the cycles of its loops, with the same instruction costs as the prediction. This shows that the program runs as "
    "planned, not the speed of an IPU.",
    "inputs that spike in a step, %",
    "cycles per training step",
    points,
    rows,
    log_x=True,
)
