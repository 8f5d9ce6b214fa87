"""A population-coded network in float16 beside float32: curves, memory and predicted time, as Markdown tables.

``python benchmarks/scripts/half_precision.py``. The digits of ``examples/digits`` in a few steps, 64 inputs, 128 hidden neurons, eight
neurons for each class whose spikes a fixed readout adds up. The reference trains it in both precisions from the same weights; a gc200's
plans say what either takes, with the spikes that were counted.
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path

import numpy as np

from snnc.backends.reference.engine import ReferenceEngine
from snnc.compiler.ir.graph import Graph, Input, Linear, Output, Population
from snnc.compiler.ir.plan import Plan
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import Adam
from snnc.compiler.lowering.lower import lower
from snnc.compiler.machines import load_target
from snnc.compiler.neurons.library import LIF, I
from snnc.compiler.tiles.mapper import make_plan
from snnc.driver.activity import measure_activity

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits.npz"
HIDDEN, CODE, BATCH, RATE = 128, 8, 32, 2e-3
PRECISIONS = {"float32": (), "float16": ("history",)}


def network(seed: int, inputs: int = 64, hidden: int = HIDDEN) -> Graph:
    """Dense layers of leaky neurons; the last sums the spikes of each class."""
    random, graph = np.random.default_rng(seed), Graph("coded")
    graph.add("x", Input((inputs,), "spikes"))
    graph.add("hidden", Population(LIF(0.9), (hidden,)))
    graph.add("code", Population(LIF(0.9), (10 * CODE,)))
    graph.add("classes", Population(I(), (10,)))
    graph.add("y", Output())
    weights = [random.normal(size=shape) * 2 / np.sqrt(shape[1]) for shape in ((hidden, inputs), (10 * CODE, hidden))]
    graph.add("first", Linear(weights[0].astype(np.float32)))
    graph.add("second", Linear(weights[1].astype(np.float32)))
    graph.add("sum", Linear(np.kron(np.eye(10), np.ones((1, CODE))).astype(np.float32), learnable=False))
    names = ("x", "first", "hidden", "second", "code", "sum", "classes", "y")
    for source, target in itertools.pairwise(names):
        graph.connect(source, target)
    return graph


def binned(x: np.ndarray, steps: int) -> np.ndarray:
    """[samples, T, n] spikes as [steps, samples, n]: 1 where a pixel fired in the bin."""
    bins = np.array_split(x.astype(np.float32), steps, axis=1)
    return np.stack([part.max(axis=1) for part in bins])


def trained(seed: int, steps: int, epochs: int, half: tuple[str, ...], data) -> list[tuple[float, float]]:
    """Mean loss of each epoch, and test accuracy after it."""
    engine = ReferenceEngine(lower(network(seed), loss=parse_loss("ce_mean_membrane"), optimizer=Adam(RATE), steps=steps, half=half))
    x, test = binned(data["x"], steps), binned(data["test_x"], steps)
    random, found = np.random.default_rng(seed), []
    for _ in range(epochs):
        order, losses = random.permutation(x.shape[1]), []
        for first in range(0, len(order) - BATCH + 1, BATCH):
            chosen = order[first : first + BATCH]
            losses.append(engine.train_batch({"x0": x[:, chosen]}, data["y"][chosen], RATE))
        (record,) = engine.forward({"x0": test}, {}).values()
        found.append((float(np.mean(losses)), float((record.mean(axis=0).argmax(axis=1) == data["test_y"]).mean())))
    return found


def curves(steps: int, epochs: int, seeds: int, data) -> None:
    """Print losses and accuracies side by side."""
    found = {name: np.array([trained(s, steps, epochs, half, data) for s in range(seeds)]) for name, half in PRECISIONS.items()}
    print(f"\nT = {steps}, {seeds} seeds\n")
    print("| epoch | loss float32 | loss float16 | accuracy float32 | accuracy float16 |\n|---|---|---|---|---|")
    for epoch in range(epochs):
        losses = [f"{found[name][:, epoch, 0].mean():.4f}" for name in PRECISIONS]
        right = [f"{100 * found[name][:, epoch, 1].mean():.1f} %" for name in PRECISIONS]
        print(f"| {epoch + 1} | {' | '.join(losses + right)} |", flush=True)


def plan_of(steps: int, half: tuple[str, ...], x: np.ndarray, *, trains: bool, hidden: int, machine: str) -> Plan:
    """What a machine takes for a batch."""
    options = {"loss": parse_loss("ce_mean_membrane"), "optimizer": Adam(RATE)} if trains else {}
    program = lower(network(0, hidden=hidden), steps=steps, half=half, **options)
    seen = measure_activity(program, {"x0": x}, "digits")
    return make_plan(program, load_target(machine), steps=steps, batch=BATCH, activity=seen.mean, counts=seen.counts)


def sizes(machine: str, hidden: int, data) -> None:
    """Print what both precisions take."""
    print(f"\n{machine}, {hidden} hidden neurons, batch {BATCH}\n")
    print("| | T | past kB | weights kB | fullest tile kB | ms |\n|---|---|---|---|---|---|")
    for trains, steps in ((True, 1), (True, 25), (True, 400), (False, 4)):
        x = np.tile(binned(data["x"], min(steps, 25))[:, :BATCH], (max(1, steps // 25), 1, 1))
        for name in PRECISIONS:
            half = () if name == "float32" else ("history",) if trains else ("weights",)
            plan = plan_of(steps, half, x, trains=trains, hidden=hidden, machine=machine)
            when = next(m for m in plan.memory_over_time if m.name == ("backward: neurons" if trains else "forward: neurons"))
            kinds = " | ".join(f"{when.all_tiles[kind] / 1000:.0f}" for kind in ("history", "weights"))
            took = f"{max(plan.tile_memory) / 1000:.1f} | {plan.cycles / plan.target.clock_hz * 1e3:.4f}"
            print(f"| {'training' if trains else 'run'}, {name} | {steps} | {kinds} | {took} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--machine", default="gc200")
    parser.add_argument("--hidden", type=int, default=HIDDEN)
    chosen = parser.parse_args()
    data = np.load(DIGITS)
    for steps in (1, 4) if chosen.epochs else ():
        curves(steps, chosen.epochs, chosen.seeds, data)
    sizes(chosen.machine, chosen.hidden, data)


if __name__ == "__main__":
    main()
