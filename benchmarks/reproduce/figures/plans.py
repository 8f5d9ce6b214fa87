"""Rows and points that several figures share: predicted training throughput of mapped networks, by strategy."""

from __future__ import annotations

from collections.abc import Iterable
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
            points.append(plan_point(x, result, series or SERIES[strategy]))
    return points


def plan_point(x: float | str, result: Any, series: str) -> Point:
    """Return the samples/s of one mapped network as a point, which has no value if the network does not fit or its mapping failed."""
    about = {name: result[name] for name in ("net", "target", "ipus", "batch", "steps", "step_ms", "activity") if name in result}
    if not result.get("fits"):
        return Point(series, "predicted", x, None, why_missing(result) or "does not fit", about)
    rate = 1e3 * result["batch"] / result["step_ms"]
    return Point(series, "predicted", x, rate, f"{result['net']} on {result['target']}, {result['step_ms']:.3g} ms per step", about)


MATRIX_RATE: Final = 16
"""float32 multiply-adds per tile and cycle of the matrix unit (AMP): 62.5 TFLOP/s of a GC200 with 1,472 tiles at 1.33 GHz."""
BOUND: Final = "IPU, dense products alone at the peak of its matrix units (bound, predicted)"
"""Label of the bound for dense float32 programs."""


def dense_throughput(net: str) -> float:
    """Return the samples/s of a step whose dense products run at the peak of the matrix units; everything else takes no time.

    Each weight has three products per sample and step: in the forward pass, for its gradient, and for the gradient of its input (not in the
    first layer, whose input needs no gradient).
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
