"""Compare a population-coded network in float16 and float32: learning curves, memory and predicted time, as Markdown tables and a picture.

``python benchmarks/scripts/training/half_precision.py`` prints the tables; with ``--page docs/howto/half-precision.md`` it replaces the
tables of the page, and with ``--plot docs/images/half-precision.svg`` it draws the curves. The network has dense layers of leaky neurons
and eight output neurons per class; a fixed readout sums the spikes of each class. The reference trains it on the digits of
``examples/digits`` in each precision, with the same initial weights and the same order of samples. Memory and time are predicted by plans
for a gc200, with the counted spikes.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from snnc.backends.reference.engine import ReferenceEngine
from snnc.compiler.ir.graph import Graph, Input, Linear, Output, Population
from snnc.compiler.ir.plan import Plan
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.loss_scale import LossScale
from snnc.compiler.losses.optimizers import Adam
from snnc.compiler.losses.weight_rounding import WeightRounding
from snnc.compiler.lowering.half_numbers import HalfNumbers
from snnc.compiler.lowering.halves import halves_of
from snnc.compiler.lowering.lower import lower
from snnc.compiler.machines import load_target
from snnc.compiler.neurons.library import LIF, I
from snnc.compiler.tiles.mapper import make_plan
from snnc.driver.activity import measure_activity

DIGITS = Path(__file__).parents[3] / "examples" / "digits" / "digits.npz"
HIDDEN, CODE, BATCH, RATE = 128, 8, 32, 2e-3
"""Numbers of hidden neurons, of output neurons per class and of samples per batch, and learning rate."""
SCALE = LossScale(2.0**10, dynamic=False)
COLOURS = ("#222222", "#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b", "#17becf")
BEGIN, END = "<!-- half_precision.py: {} -->", "<!-- end -->"
"""Lines of the page before and after a table, with the table's name."""


def optimizer_of(half: HalfNumbers | None) -> Adam:
    return Adam(RATE, loss_scale=SCALE if half is not None and half.deltas else None)


def lowering(half: HalfNumbers | None, *, trains: bool) -> dict[str, object]:
    rounding = None if half is None or half.weights is None else WeightRounding(half.weights)
    return {"half": halves_of("float32", half, trains=trains), "rounding": rounding}


WAYS: Mapping[str, HalfNumbers | None] = {
    "float32": None,
    "history": HalfNumbers(history=True),
    "weights, nearest": HalfNumbers("nearest", history=True),
    "weights, stochastic": HalfNumbers("stochastic", history=True),
    "weights, master": HalfNumbers("master", history=True),
    "all, stochastic": HalfNumbers("stochastic", history=True, deltas=True),
    "states": HalfNumbers(history=True, states=True),
    "all, stochastic, states": HalfNumbers("stochastic", history=True, deltas=True, states=True),
}
"""Choices of values to store as float16, by name."""


def network(seed: int, inputs: int = 64, hidden: int = HIDDEN) -> Graph:
    """Return dense layers of leaky neurons; the last layer sums the spikes of each class."""
    random, graph = np.random.default_rng(seed), Graph("coded")
    graph.add("x", Input((inputs,), "spikes"))
    graph.add("hidden", Population(LIF(0.9), (hidden,)))
    graph.add("code", Population(LIF(0.9), (10 * CODE,)))
    graph.add("classes", Population(I(), (10,)))
    graph.add("y", Output())
    weights = [random.normal(size=shape) * 2 / np.sqrt(shape[1]) for shape in ((hidden, inputs), (10 * CODE, hidden))]
    # Every precision begins with the same weights.
    weights = [weight.astype(np.float16) for weight in weights]
    graph.add("first", Linear(weights[0].astype(np.float32)))
    graph.add("second", Linear(weights[1].astype(np.float32)))
    graph.add("sum", Linear(np.kron(np.eye(10), np.ones((1, CODE))).astype(np.float32), learnable=False))
    names = ("x", "first", "hidden", "second", "code", "sum", "classes", "y")
    for source, target in itertools.pairwise(names):
        graph.connect(source, target)
    return graph


def binned(x: np.ndarray, steps: int) -> np.ndarray:
    """Convert spikes [samples, T, n] to [steps, samples, n]: 1 if a pixel fired in the bin."""
    bins = np.array_split(x.astype(np.float32), steps, axis=1)
    return np.stack([part.max(axis=1) for part in bins])


def trained(seed: int, steps: int, epochs: int, half: HalfNumbers | None, data: Mapping[str, np.ndarray]) -> list[tuple[float, float]]:
    """Return the mean loss of each epoch and the test accuracy after it."""
    options = {"loss": parse_loss("ce_mean_membrane"), "optimizer": optimizer_of(half), "steps": steps}
    engine = ReferenceEngine(lower(network(seed), **options, **lowering(half, trains=True)))
    x, test = binned(data["x"], steps), binned(data["test_x"], steps)
    random, curve = np.random.default_rng(seed), []
    for _ in range(epochs):
        order, losses = random.permutation(x.shape[1]), []
        for first in range(0, len(order) - BATCH + 1, BATCH):
            chosen = order[first : first + BATCH]
            losses.append(engine.train_batch({"x0": x[:, chosen]}, data["y"][chosen], RATE))
        (record,) = engine.forward({"x0": test}, {}).values()
        curve.append((float(np.mean(losses)), float((record.mean(axis=0).argmax(axis=1) == data["test_y"]).mean())))
    return curve


def curves(steps: int, epochs: int, seeds: int, data: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the losses and accuracies of each choice of float16 numbers, [seeds, epochs, 2]."""
    return {name: np.array([trained(s, steps, epochs, half, data) for s in range(seeds)]) for name, half in WAYS.items()}


def curve_table(curves_by_steps: Mapping[int, Mapping[str, np.ndarray]]) -> str:
    """Return a table of the losses after some epochs and the accuracies after the last one: mean (smallest-largest) over seeds."""
    epochs = next(iter(next(iter(curves_by_steps.values())).values())).shape[1]
    shown = sorted({0, 1, epochs // 2 - 1, epochs - 1})
    head = " | ".join(f"loss, epoch {e + 1}" for e in shown)
    lines = [f"| T | float16 | {head} | accuracy, % |", "|---|---|" + "---|" * (len(shown) + 1)]
    for steps, ways in curves_by_steps.items():
        for name, values in ways.items():
            losses = [f"{values[:, e, 0].mean():.4f} ({values[:, e, 0].min():.4f}-{values[:, e, 0].max():.4f})" for e in shown]
            right = 100 * values[:, -1, 1]
            lines.append(f"| {steps} | {name} | {' | '.join(losses)} | {right.mean():.1f} ({right.min():.1f}-{right.max():.1f}) |")
    return "\n".join(lines)


def plan_of(steps: int, half: HalfNumbers | None, x: np.ndarray, *, trains: bool, hidden: int, machine: str) -> Plan:
    options = {"loss": parse_loss("ce_mean_membrane"), "optimizer": optimizer_of(half)} if trains else {}
    program = lower(network(0, x.shape[2], hidden), steps=steps, **options, **lowering(half, trains=trains))
    activity = measure_activity(program, {"x0": x}, "the data")
    return make_plan(program, load_target(machine), steps=steps, batch=BATCH, activity=activity.mean, counts=activity.counts)


def size_table(machine: str, inputs: int, hidden: int) -> str:
    """Return a table of memory and time of each choice on a machine, for a network with inputs that fire in a tenth of the steps.

    Each number of bytes, except that of the fullest tile, is the sum over all tiles, in the superstep in which this sum is largest.
    """
    head = ("weights", "optimiser", "gradients", "history")
    kinds = " | ".join(f"{name} KiB" for name in head)
    lines = [f"| program | T | {kinds} | all KiB | fullest tile KiB | ms per batch |", "|---|---|" + "---|" * 7]
    random = np.random.default_rng(0)
    runs = {"float32": None, "weights": HalfNumbers("nearest"), "weights, states": HalfNumbers("nearest", states=True)}
    for trains, steps, ways in ((True, 1, WAYS), (True, 25, WAYS), (False, 25, runs)):
        x = (random.random((steps, BATCH, inputs)) < 0.1).astype(np.float32)
        for name, half in ways.items():
            plan = plan_of(steps, half, x, trains=trains, hidden=hidden, machine=machine)
            when = max(plan.memory_over_time, key=lambda moment: sum(moment.all_tiles.values()))
            kinds = " | ".join(f"{max(moment.all_tiles[kind] for moment in plan.memory_over_time) / 1024:,.0f}" for kind in head)
            tiles = f"{sum(when.all_tiles.values()) / 1024:,.0f} | {max(plan.tile_memory) / 1024:.1f}"
            milliseconds = plan.cycles / plan.target.clock_hz * 1e3
            lines.append(f"| {'training' if trains else 'run'}, {name} | {steps} | {kinds} | {tiles} | {milliseconds:.4f} |")
    return "\n".join(lines)


def draw_curves(curves_by_steps: Mapping[int, Mapping[str, np.ndarray]]) -> str:
    """Draw the losses over epochs as SVG, with a panel for each number of steps: means over seeds, on a logarithmic scale."""
    left, top, wide, high, between = 52, 26, 300, 220, 60
    values = [ways[name][:, :, 0].mean(axis=0) for ways in curves_by_steps.values() for name in ways]
    low, large = np.log10(min(v.min() for v in values)), np.log10(max(v.max() for v in values))
    width = left + len(curves_by_steps) * (wide + between) + 120
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {top + high + 44}" font-family="sans-serif" font-size="12">']
    for panel, (steps, ways) in enumerate(curves_by_steps.items()):
        x0 = left + panel * (wide + between)
        lines.append(f'<text x="{x0 + wide / 2}" y="16" text-anchor="middle">loss, T = {steps}</text>')
        for tick in (0.03, 0.1, 0.3, 1.0):
            if low <= np.log10(tick) <= large:
                y = top + high * (large - np.log10(tick)) / (large - low)
                lines.append(f'<path d="M{x0} {y:.1f}h{wide}" stroke="#dddddd"/>')
                lines.append(f'<text x="{x0 - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
        for number, (name, losses) in enumerate(ways.items()):
            means = np.log10(losses[:, :, 0].mean(axis=0))
            each = wide / max(1, len(means) - 1)
            points = " ".join(f"{x0 + each * e:.1f},{top + high * (large - m) / (large - low):.1f}" for e, m in enumerate(means))
            lines.append(f'<polyline points="{points}" fill="none" stroke="{COLOURS[number]}" stroke-width="1.6"/>')
            if panel == len(curves_by_steps) - 1:
                lines.append(f'<text x="{x0 + wide + 12}" y="{top + 14 + 18 * number}" fill="{COLOURS[number]}">{name}</text>')
        lines.append(f'<text x="{x0 + wide / 2}" y="{top + high + 30}" text-anchor="middle">epochs</text>')
    return "\n".join([*lines, "</svg>", ""])


def with_table(page: str, name: str, table: str) -> str:
    """Return the page with a new table between the markers."""
    begin = BEGIN.format(name)
    before, _, rest = page.partition(begin)
    return f"{before}{begin}\n{table}\n{END}{rest.partition(END)[2]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--machine", default="gc200")
    parser.add_argument("--inputs", type=int, default=784)
    parser.add_argument("--hidden", type=int, default=1000)
    parser.add_argument("--page", type=Path)
    parser.add_argument("--plot", type=Path)
    chosen = parser.parse_args()
    tables = {}
    if chosen.epochs:
        data = np.load(DIGITS)
        curves_by_steps = {steps: curves(steps, chosen.epochs, chosen.seeds, data) for steps in (1, 4)}
        tables["curves"] = curve_table(curves_by_steps)
        if chosen.plot is not None:
            chosen.plot.write_text(draw_curves(curves_by_steps), encoding="utf-8")
        print(tables["curves"], flush=True)
    tables["sizes"] = size_table(chosen.machine, chosen.inputs, chosen.hidden)
    print(tables["sizes"], flush=True)
    if chosen.page is not None:
        page = chosen.page.read_text(encoding="utf-8")
        for name, table in tables.items():
            page = with_table(page, name, table)
        chosen.page.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
