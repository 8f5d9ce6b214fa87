"""Joules of a training step on an IPU and on a GPU, between two bounds."""

from __future__ import annotations

from typing import Final

from snnc.benchmarks.nets import benchmark
from snnc.benchmarks.reproduce.energy import energies, least_joules, synaptic_work
from snnc.benchmarks.reproduce.figure import Figure, Point, Results, Row, why_missing
from snnc.benchmarks.reproduce.figures.gpu import NETS
from snnc.benchmarks.reproduce.figures.plans import plan_row
from snnc.benchmarks.reproduce.measured import measured_steps

PROGRAMS: Final = {True: "products of spikes alone", False: "products of all values alone"}


def rows(quick: bool) -> tuple[Row, ...]:
    """Return the networks that a GPU was measured with, on an IPU."""
    del quick
    return tuple(plan_row(net) for net in NETS)


def points(results: Results) -> tuple[Point, ...]:
    """Return bounds from powers and times, and from counted products."""
    known, found = energies(), []
    for net in NETS:
        result = results.get(plan_row(net).key)
        if result is not None:
            joules = 1e-3 * result["step_ms"] * known.watts["GC200"] if result.get("fits") else None
            note = why_missing(result) or f"{known.watts['GC200']:g} W for {result['step_ms']:.3g} ms (predicted). {known.sources['GC200']}"
            series = "IPU, snnc's program: its share of the machine's power (upper bound, predicted)"
            found.append(Point(series, "predicted", net, joules, note))
        case = benchmark(net)
        for events, words in PROGRAMS.items():
            least = least_joules(synaptic_work(case, events=events), known, events=events)
            note = f"{known.sources['addition']}; {known.sources['access']}"
            found.append(Point(f"any chip of 45 nm: {words} (lower bound, predicted)", "predicted", net, least, note))
    for step in measured_steps():
        if "H100" in step.device:
            note = f"{known.watts['H100']:g} W for {step.ms:g} ms (measured {step.date}, {step.device}). {known.sources['H100']}"
            series = f"GPU, {step.program}: the module's limit (upper bound, predicted)"
            found.append(Point(series, "predicted", step.net, 1e-3 * step.ms * known.watts["H100"], note))
    return tuple(sorted(found, key=lambda point: NETS.index(str(point.x))))


FIGURE: Final = Figure(
    "energy",
    "2311.04386",
    "Energy of a training step, between bounds",
    "Joules, lower is better; all predicted, no power was measured. Upper: the power limit of a device times a step, predicted for the "
    "IPU and measured for the GPU; the IPU's share includes its machine, the GPU's excludes its host. Lower: published energies of 32-bit "
    "additions, multiplications and accesses to small memories at 45 nm times the products of the network's dense connections; neurons, "
    "the optimiser and data that move are left out, and newer processes take less.",
    "network",
    "joules a training step",
    rows,
    points,
)
