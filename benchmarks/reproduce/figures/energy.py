"""Figure: joules of a training step on an IPU, a GPU and a CPU.

Upper bounds are the power limit of a device times the time of a step. The other numbers are energies that a GPU's driver counted, and
counts of operations times their published energies at 45 nm.
"""

from __future__ import annotations

from typing import Any, Final

from snnc.benchmarks.reproduce.energy import ENERGY_NETS, QUICK_NETS, counts_of, energies, processor_joules, product_joules
from snnc.benchmarks.reproduce.figure import Figure, Point, Results, Row, why_missing
from snnc.benchmarks.reproduce.figures.gpu import OTHER, matched_row, problem_differs
from snnc.benchmarks.reproduce.measured import measured_steps

PRODUCTS: Final = {"products of spikes alone": True, "products of all values alone": False}
"""Counted products by title of the series; the value is the argument `events` of the counts and energies."""
PROCESSOR: Final = "processor: products of spikes and their overhead, at energies of 45 nm (predicted)"


def counts_row(net: str) -> Row:
    """Return the row that counts the products and moved words of a network."""
    return Row("energy counts", {"name": net})


def rows(quick: bool) -> tuple[Row, ...]:
    """Return two rows for each network: its predicted step on an IPU, and its numbers of products and moved words."""
    nets = QUICK_NETS if quick else ENERGY_NETS
    return (*map(matched_row, nets), *map(counts_row, nets))


def points(results: Results) -> tuple[Point, ...]:
    """Return, for each network, upper bounds from power and time, measured energies, and energies of counted operations."""
    return tuple(point for net in ENERGY_NETS for point in (*_upper(net, results), *_counted(net, results)))


def _upper(net: str, results: Results) -> list[Point]:
    known, points = energies(), []
    result = results.get(matched_row(net).key)
    if result is not None:
        joules = 1e-3 * result["step_ms"] * known.watts["GC200"] if result.get("fits") else None
        note = why_missing(result) or f"{known.watts['GC200']:g} W for {result['step_ms']:.3g} ms (predicted). {known.sources['GC200']}"
        series = "IPU, snnc's program: its share of the machine's power (upper bound, predicted)"
        points.append(Point(series, "predicted", net, joules, note))
    for step in (step for step in measured_steps() if step.net == net):
        x = net + (OTHER if problem_differs(step, results) else "")
        if "H100" in step.device:
            note = f"{known.watts['H100']:g} W for {step.ms:g} ms (measured {step.date}, {step.device}). {known.sources['H100']}"
            series = f"GPU, {step.program}: the module's limit (upper bound, predicted)"
            points.append(Point(series, "predicted", x, 1e-3 * step.ms * known.watts["H100"], note))
        if step.joules is not None:
            note = f"NVML's counter of {step.origin}"
            points.append(Point(f"GPU, {step.program} (measured)", "measured", x, step.joules, note))
    return points


def _counted(net: str, results: Results) -> list[Point]:
    known = energies()
    result: Any = results.get(counts_row(net).key)
    if result is None:
        return []
    if why_missing(result):
        return [Point(PROCESSOR, "predicted", net, None, why_missing(result))]
    points = []
    for title, events in PRODUCTS.items():
        note = f"{known.sources['addition']}; {known.sources['multiplication']}; {known.sources['access']}"
        joules = product_joules(counts_of(result, events=events), known, events=events)
        points.append(Point(f"{title}, at energies of 45 nm (predicted)", "predicted", net, joules, note))
    note = "; ".join((f"{result['moved_words']:,.0f} words of memory", *(known.sources[n] for n in ("cache", "instruction", "memory"))))
    joules = processor_joules(counts_of(result, events=True), result["moved_words"], known)
    return [*points, Point(PROCESSOR, "predicted", net, joules, note)]


FIGURE: Final = Figure(
    "energy",
    "Energy of a training step",
    "Joules, lower is better. All numbers are predicted, except those of GPUs whose driver counted the energy (NVML). Upper bounds: "
    "the power limit of a device times the duration of a step, predicted for the IPU and measured for the GPU; the IPU's share "
    "includes its machine, the GPU's excludes its host. Products: published energies of 32-bit additions, multiplications and "
    "accesses to small memories at 45 nm times the number of products in dense connections, without neurons, optimiser and data movement. "
    "Processor: the products of spikes with the energy of instructions (eight products share one), of a 1 MiB cache, and of main "
    "memory for histories and the optimiser. Chips in newer technologies need less energy, so these numbers are not bounds for them.",
    "network",
    "joules per training step",
    points,
    rows,
)
