"""Figures: training throughput against activity, neurons per tile, batch size, and the layers of the published log."""

from __future__ import annotations

from typing import Final

from snnc.benchmarks.log import logged_runs
from snnc.benchmarks.reproduce.figure import Figure, Point, Results, Row
from snnc.benchmarks.reproduce.figures.plans import DENSE, PUBLISHED, SNNC, dense_bound, gpu_points, gpu_row, plan_row, throughput

PERCENTS: Final = (0.5, 1, 2, 2.5, 5, 10, 20, 25, 50)
QUICK_PERCENTS: Final = (0.5, 2, 5, 20, 50)
OF_ACTIVITY: Final = "nmnist-h3-a{:g}"
"""Name of a network for a capacity in %; :mod:`snnc.benchmarks.nets` explains these names."""
SIZES: Final = (2, 4, 8, 16, 32)
"""Numbers of neurons per tile."""
QUICK_SIZES: Final = (2, 8)
OF_SIZE: Final = "shd-n{}-b3-a5"
STRATEGIES: Final = (SNNC, PUBLISHED, DENSE)
BATCHES: Final = (48, 96, 192, 384)
IPUS: Final = (1, 2, 4)
OF_BATCH: Final = "shd-x{}-n2-a5-B{}"
QUICK_LOGGED: Final = ("logged-h2-a1", "logged-h3-a5", "logged-h5-a10")
LOGGED_BATCH: Final = 48


def _activity_rows(quick: bool) -> tuple[Row, ...]:
    chosen = QUICK_PERCENTS if quick else PERCENTS
    sparse = [plan_row(OF_ACTIVITY.format(p), strategy) for p in chosen for strategy in (SNNC, PUBLISHED)]
    return (*sparse, plan_row(OF_ACTIVITY.format(5), DENSE), gpu_row(OF_ACTIVITY.format(5)))


def _activity_points(results: Results) -> tuple[Point, ...]:
    """Return the points of one line per program; the lines of programs without events are horizontal."""
    places = [(p, OF_ACTIVITY.format(p)) for p in PERCENTS]
    ends = [(p, OF_ACTIVITY.format(5)) for p in (PERCENTS[0], PERCENTS[-1])]
    bound = [dense_bound(net, p) for p, net in ends]
    gpu = [point for p, net in ends for point in gpu_points(results, net, p, rate=True)]
    return (*throughput(results, places, SNNC), *throughput(results, places, PUBLISHED), *throughput(results, ends, DENSE), *bound, *gpu)


def _size_points(results: Results) -> tuple[Point, ...]:
    places = [(float(n), OF_SIZE.format(n)) for n in SIZES]
    lines = [point for strategy in STRATEGIES for point in throughput(results, places, strategy)]
    return (*lines, *(dense_bound(net, n) for n, net in places))


def _batch_points(results: Results) -> tuple[Point, ...]:
    points: list[Point] = []
    for x in IPUS:
        label = f"{x} IPU{'s' if x > 1 else ''}, snnc's program (predicted)"
        points += throughput(results, [(float(b), OF_BATCH.format(x, b)) for b in BATCHES], SNNC, label)
    return tuple(points)


def _layer_rows(quick: bool) -> tuple[Row, ...]:
    nets = QUICK_LOGGED if quick else tuple(run.name for run in logged_runs())
    return tuple(plan_row(net, strategy) for net in nets for strategy in (SNNC, PUBLISHED))


def _layer_points(results: Results) -> tuple[Point, ...]:
    places, log = [], []
    for run in logged_runs():
        x, note = run.name.removeprefix("logged-"), f"{run.logged_ms:g} ms per step, whole ms as printed by Keras"
        places.append((x, run.name))
        rate = 1e3 * LOGGED_BATCH / run.logged_ms
        log.append(Point("IPU, the paper's program (published log)", "published", x, rate, note, {"net": run.name}))
    return (*log, *throughput(results, places, PUBLISHED), *throughput(results, places, SNNC))


ACTIVITY: Final = Figure(
    "activity",
    "Training throughput against activity",
    "N-MNIST inputs (2,312), three hidden layers of 978 neurons that fill one IPU, T = 100, batch 48, Adam. A hidden layer's "
    "capacity K is the given share of its neurons, and every window is full. A program without events moves and multiplies every value at "
    "any activity; snnc's does not use the IPU's matrix units, so the bound of a program that uses them is also drawn. snnc's GPU program "
    "multiplies every value, too. No GPU was "
    "measured at these activities.",
    "capacity K, % of a layer",
    "samples/s",
    _activity_points,
    _activity_rows,
    log_x=True,
)
NEURONS_PER_TILE: Final = Figure(
    "neurons-per-tile",
    "Training throughput against neurons per tile",
    "SHD inputs (700), hidden layers that fill one IPU with the given number of neurons on each of its 1,471 tiles (three layers "
    "for every two neurons per tile), T = 100, "
    "batch 24, SGD, capacity 5 %. A cross above the axes marks a network that does not fit.",
    "neurons per tile",
    "samples/s",
    _size_points,
    lambda quick: tuple(plan_row(OF_SIZE.format(n), s) for n in (QUICK_SIZES if quick else SIZES) for s in STRATEGIES),
    log_x=True,
)
BATCH: Final = Figure(
    "batch",
    "Training throughput against the batch size",
    "SHD inputs, 2 neurons per tile, three hidden layers per IPU, T = 100, SGD, capacity 5 %.",
    "samples per batch",
    "samples/s",
    _batch_points,
    lambda quick: tuple(plan_row(OF_BATCH.format(x, b)) for x in ((1,) if quick else IPUS) for b in BATCHES),
    log_x=True,
)
LAYERS: Final = Figure(
    "layers",
    "Training throughput against layers and activity: the published log",
    "N-MNIST inputs, 2 to 5 hidden layers (h) that fill one IPU, capacity 1, 5 and 10 % (a), T = 100, batch 48, Adam. The log "
    "records neither its clock nor its activity: the predictions use the activity of a simulation with the logged weight limits, and 1.33 "
    "GHz.",
    "hidden layers and capacity",
    "samples/s",
    _layer_points,
    _layer_rows,
)
