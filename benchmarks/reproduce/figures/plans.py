"""Rows and points that several figures share: predicted training steps on IPUs, by mapping strategy, and on a GPU."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, Final

from snnc.benchmarks.nets import benchmark, same_network
from snnc.benchmarks.reproduce.figure import Point, Results, Row, why_missing
from snnc.compiler.machines import load_target

SNNC: Final = "snnc"
DENSE: Final = "dense"
PUBLISHED: Final = "published"
SERIES: Final[dict[str, str]] = {
    SNNC: "IPU, snnc's sparse program (predicted)",
    DENSE: "IPU, snnc's program without events or matrix units (predicted)",
    PUBLISHED: "IPU, the paper's sparse program (predicted by a model of it)",
}
"""Label of each strategy."""
GPU: Final = "GPU, snnc's program (predicted for an H100)"
"""Label of snnc's CUDA program."""


def plan_row(net: str, strategy: str = SNNC, chips: int | None = None) -> Row:
    """Return the row of a benchmark network mapped by one strategy, on `chips` chips (None: the network's own number)."""
    return Row("plan", {"name": same_network(net), "strategy": strategy} | ({"chips": chips} if chips else {}))


def throughput(
    results: Results, places: Iterable[tuple[float | str, str]], strategy: str, series: str | None = None, chips: int | None = None
) -> list[Point]:
    """Return the samples/s of networks mapped by `strategy`; `places` lists each network's position on the x axis and its name."""
    points = []
    for x, net in places:
        result = results.get(plan_row(net, strategy, chips).key)
        if result is not None:
            keys = ("net", "target", "ipus", "batch", "steps", "step_ms", "activity")
            points.append(step_point(series or SERIES[strategy], x, result, {key: result[key] for key in keys if key in result}))
    return points


def step_point(series: str, x: float | str, result: Mapping[str, Any], about: Mapping[str, Any], *, rate: bool = True) -> Point:
    """Return a predicted training step as a point in samples/s, or in milliseconds if `rate` is false.

    The point has no number if the network does not fit or the row failed.
    """
    if "step_ms" not in result or not result.get("fits", True):
        return Point(series, "predicted", x, None, why_missing(result) or "does not fit", about)
    ms = result["step_ms"]
    note = f"{result['net']} on {result['device' if 'device' in result else 'target']}, {ms:.3g} ms per step"
    return Point(series, "predicted", x, 1e3 * result["batch"] / ms if rate else ms, note, about)


def gpu_row(net: str) -> Row:
    """Return the row that predicts the training step of a network on an H100."""
    return Row("gpu step", {"name": same_network(net)})


def gpu_points(results: Results, net: str, x: float | str, *, rate: bool) -> list[Point]:
    """Return the :func:`step_point` of a network on an H100; none if its row has no result."""
    result = results.get(gpu_row(net).key)
    return [] if result is None else [step_point(GPU, x, result, dict(result) if "step_ms" in result else {}, rate=rate)]


MATRIX_RATE: Final = 16
"""float32 multiply-adds per tile and cycle of the matrix unit (AMP): 62.5 TFLOP/s of a GC200 with 1,472 tiles at 1.33 GHz."""
BOUND: Final = "IPU, dense products alone at the peak of its matrix units (bound, predicted)"
"""Label of the bound for dense float32 programs."""


def dense_throughput(net: str) -> float:
    """Return the samples/s of training if dense products run at the peak of the matrix units and everything else takes no time.

    Each weight has three products per sample and time step: in the forward pass, for its gradient, and for the gradient of its input (not
    in the first layer, whose input needs no gradient).
    """
    case = benchmark(net)
    assert case.published is not None
    machine = load_target(case.target)
    sizes = [case.published.inputs, *(layer.neurons for layer in case.published.layers)]
    weights = [before * after for before, after in pairwise(sizes)]
    products = (3 * sum(weights) - weights[0]) * case.steps * case.batch
    seconds = products / (MATRIX_RATE * machine.tiles_per_chip * case.chips * machine.clock_hz)
    return case.batch / seconds


def dense_bound(net: str, x: float | str) -> Point:
    """Return the :func:`dense_throughput` of a network as a point at `x`."""
    case, rate = benchmark(net), dense_throughput(net)
    return Point(BOUND, "predicted", x, rate, f"{1e3 * case.batch / rate:.3g} ms per step", {"net": net, "target": case.target})
