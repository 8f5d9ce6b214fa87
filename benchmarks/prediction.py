"""Predicted beside emulated, phase by phase: ``python benchmarks/prediction.py [--json FILE] [NET ...]``.

Every network is mapped with the activity that its inputs give on the reference, emitted, and trained for two steps at learning rate 0 on
the emulator; the second step is compared (the first also spreads the weights). Columns say what was predicted and what was emulated.
Neither was measured on hardware.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

import snnc
from snnc.activity import measure_activity
from snnc.backends.poplar.emit import emit_poplar
from snnc.backends.poplar.engine import open_engine
from snnc.compiler.losses import parse_loss
from snnc.compiler.lower import lower
from snnc.compiler.mapping import make_plan
from snnc.compiler.optimizers import Adam
from snnc.compiler.plan import Plan
from snnc.compiler.target import Target
from snnc.compiler.targets import load_target
from snnc.compiling import as_graph

DIGITS: Final = Path(__file__).parent.parent / "examples" / "digits" / "digits.onnx"
STEPS_OF_PHASE: Final[Mapping[str, str]] = {
    "forward: start": r"copy constant\d+ to first_clock$",
    "backward: start": r"copy constant\d+ to first_clock$",
    "forward: relays": r"F1\b",
    "forward: windows": r"F1b\b",
    "forward: neurons": r"F2\b",
    "forward: test for further windows": r"FD\b",
    "forward: further windows": r"FG\b",
    "forward: next windows": r"FN\b",
    "loss: scores": r"L1 scores\b",
    "loss: adjoints": r"L1 loss\b",
    "loss: sum": r"L2\b",
    "backward: relays and source gradients": r"B1\b",
    "backward: neurons": r"B2\b",
    "backward: reduction": r"B3\b",
    "backward: test for further windows": r"BD\b",
    "backward: further windows": r"BG\b",
    "backward: next windows": r"BN\b",
    "update: private gradients": r"U1 private\b",
    "update: optimiser": r"U1 update\b",
    "update: replicas": r"copy (\S+) to \1$",
    "update: weight copies": r"copy \S+ to \S+_(rows|copies)$",
}
"""Phase of a plan to the steps of the emulator's profile; the first phase that fits has a step (the two starts: one each)."""
COUNTED: Final[Mapping[str, tuple[str, ...]]] = {
    "compute": ("compute_cycles_busiest",),
    "sync": ("sync_cycles", "control_cycles"),
    "exchange": ("exchange_cycles", "link_cycles"),
}


@dataclass(frozen=True)
class Case:
    """A network (or a file) with its target, steps, batch, and the density of its random inputs."""

    make: Callable[[snnc.Network], None] | Path
    target: Target
    steps: int
    batch: int
    classes: int
    density: float = 0.05
    options: tuple[tuple[str, Any], ...] = ()


def small(tiles: int, chips: int = 1) -> Target:
    """A GC200 of few tiles."""
    return replace(load_target("gc200"), name=f"gc200-{tiles}x{chips}", tiles_per_chip=tiles, chips=chips)


def recurrent(inputs: int, hidden: int, classes: int) -> Callable[[snnc.Network], None]:
    """Recurrent LIF layer and a leaky readout."""

    def make(net: snnc.Network) -> None:
        spikes = net.input(inputs, kind="spikes")
        layer = net.population(hidden, snnc.LIF(beta=0.9, reset="zero"), name="hidden")
        readout = net.population(classes, snnc.LI(beta=0.9), name="readout")
        net.connect(spikes, layer, snnc.Dense(seed=0))
        net.connect(layer, layer, snnc.Dense(bias=False, seed=1), delay=1)
        net.connect(layer, readout, snnc.Dense(seed=2))

    return make


def deep(kind: str, *widths: int) -> Callable[[snnc.Network], None]:
    """Layers of LIF neurons; the input is of `kind`."""

    def make(net: snnc.Network) -> None:
        last: Any = net.input(widths[0], kind=kind)  # type: ignore[arg-type]
        for n, width in enumerate(widths[1:-1]):
            layer = net.population(width, snnc.LIF(beta=0.8), name=f"hidden{n}")
            net.connect(last, layer, snnc.Dense(seed=n))
            last = layer
        readout = net.population(widths[-1], snnc.LI(beta=0.9), name="readout")
        net.connect(last, readout, snnc.Dense(seed=9))

    return make


def adaptive(net: snnc.Network) -> None:
    """Adaptive neurons with a gain of their own behind them."""
    spikes = net.input(200, kind="spikes")
    hidden = net.population(120, snnc.ALIF(), name="hidden")
    gain = net.population(120, snnc.LIF(beta=0.7), name="gain")
    readout = net.population(10, snnc.LI(beta=0.9), name="readout")
    net.connect(spikes, hidden, snnc.Dense(seed=0))
    net.connect(hidden, gain, snnc.OneToOne(np.full(120, 1.5, dtype=np.float32)))
    net.connect(gain, readout, snnc.Dense(seed=2))


CASES: Final[Mapping[str, Case]] = {
    "digits": Case(DIGITS, load_target("gc200"), 10, 32, 10, 0.2),
    "W1": Case(recurrent(700, 256, 20), load_target("gc200"), 100, 64, 20),
    "W1 drop 60": Case(recurrent(700, 256, 20), load_target("gc200"), 100, 64, 20, options=(("mode", "drop"), ("capacity", 60))),
    "recurrent, 64 tiles": Case(recurrent(300, 128, 10), small(64), 40, 16, 10),
    "recurrent, 2 chips": Case(recurrent(300, 128, 10), small(40, 2), 40, 16, 10),
    "recurrent, 4 chips": Case(recurrent(300, 128, 10), small(24, 4), 40, 16, 10),
    "further windows": Case(recurrent(300, 128, 10), small(64), 40, 16, 10, options=(("capacity", 12),)),
    "deep, spikes": Case(deep("spikes", 256, 128, 96, 64, 10), small(100), 40, 16, 10),
    "deep, values": Case(deep("values", 256, 128, 96, 64, 10), small(100), 40, 16, 10),
    "deep, one tile": Case(deep("spikes", 60, 40, 30, 10), small(1), 20, 6, 10),
    "adaptive, one to one": Case(adaptive, small(48), 40, 16, 10),
}


def compare(case: Case) -> dict[str, Any]:
    """Map, emit and emulate one network; return predicted and emulated cycles of every phase, and bytes."""
    if isinstance(case.make, Path):
        graph, loss = as_graph(case.make, input_kind="spikes"), "ce_count"
    else:
        net, loss = snnc.Network("net"), "ce_mean_membrane"
        case.make(net)
        graph = net.graph()
    program = lower(graph, loss=parse_loss(loss), optimizer=Adam(1e-3), steps=case.steps)
    random = np.random.default_rng(0)
    x = {i.id: (random.random((case.steps, case.batch, *i.shape)) < case.density).astype(np.float32) for i in program.inputs}
    labels = random.integers(0, case.classes, case.batch)
    seen = measure_activity(program, x, "the same inputs")
    measured = {"activity": seen.mean, "near": seen.near, "rates": seen.rates, "counts": seen.counts, "near_counts": seen.near_counts}
    plan = make_plan(program, case.target, steps=case.steps, batch=case.batch, **measured, **dict(case.options))
    with tempfile.TemporaryDirectory() as folder:
        engine = open_engine(emit_poplar(program, plan, Path(folder) / "project"))
        profiles = []
        for _ in range(2):
            engine.train_batch(x, labels, 0.0)
            profiles.append(engine.profile()["emulator"])
    return row(plan, *profiles)


def row(plan: Plan, before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """What one step was predicted and emulated to cost: the difference of two profiles."""
    held = np.sum([plan.memory[name] for name in plan.memory if name not in ("exchange", "code")], axis=0)
    memory = after["per_tile"]["memory"]
    return {
        "tiles": sum(p.tiles for p in plan.populations),
        "replicas": [p.replicas for p in plan.populations],
        "predicted_cycles": plan.cycles,
        "emulated_cycles": after["cycles_last_run"],
        "predicted_variables": int(held.sum()),
        "emulated_variables": sum(memory["variables"]),
        "predicted_peak_bytes": max(plan.tile_memory),
        "emulated_peak_bytes": max(memory["total"]),
        "phases": phases(plan, [_difference(a, b) for a, b in zip(before["steps"], after["steps"], strict=True)]),
    }


def _difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value - before[name] if isinstance(value, int | float) else value for name, value in after.items()}


def phases(plan: Plan, steps: list[dict[str, Any]]) -> dict[str, dict[str, dict[str, float]]]:
    """Phase -> "predicted", "emulated" -> compute, sync and exchange of all its runs in a step."""
    decisions = sum(sum(step[name] for name in COUNTED["sync"]) for step in steps if step["kind"] == "control")
    asked = sum(phase.name.endswith("test for further windows") for phase in plan.phases)
    waiting, found = list(steps), {}
    for phase in plan.phases:
        mine = [step for step in waiting if re.match(STEPS_OF_PHASE.get(phase.name, "$."), step["name"])]
        mine = mine[:1] if phase.name.endswith(": start") else mine
        waiting = [step for step in waiting if all(step is not other for other in mine)]
        emulated = {kind: float(sum(step[name] for step in mine for name in names)) for kind, names in COUNTED.items()}
        emulated["sync"] += decisions / asked if phase.name.endswith("test for further windows") else 0.0
        predicted = {kind: phase.runs * float(getattr(phase, kind)) for kind in COUNTED}
        found[phase.name] = {"predicted": predicted, "emulated": emulated}
    return found


def show(name: str, found: Mapping[str, Any]) -> None:
    """Print one comparison."""
    print(f"\n{name}: {found['tiles']} tiles, replicas {found['replicas']}")
    print(f"  {'':40s}{'predicted':>14s}{'emulated':>14s}{'ratio':>8s}")
    for what in ("cycles", "variables", "peak_bytes"):
        _line(what, found[f"predicted_{what}"], found[f"emulated_{what}"])
    for phase, both in found["phases"].items():
        _line(f"  {phase}", sum(both["predicted"].values()), sum(both["emulated"].values()))


def _line(what: str, predicted: float, emulated: float) -> None:
    ratio = f"{predicted / emulated:8.3f}" if emulated else "       -"
    print(f"  {what:40s}{predicted:14,.0f}{emulated:14,.0f}{ratio}")


def main() -> None:
    """Run the named networks, all by default."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nets", nargs="*", help=f"some of: {', '.join(CASES)}")
    parser.add_argument("--json", type=Path, help="write all numbers to this file")
    chosen = parser.parse_args()
    found = {}
    for name in chosen.nets or CASES:
        found[name] = compare(CASES[name])
        show(name, found[name])
    if chosen.json:
        chosen.json.write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
