"""Compare predicted and emulated cycles, phase by phase: ``python benchmarks/scripts/prediction/prediction.py [--json FILE] [NET ...]``.

The networks are those of ``prediction_nets.py``; ``random:SEED`` and ``mixed:SEED`` draw further ones. The reference counts the events that
the inputs cause. The network is mapped with these counts, emitted, and trained for two steps at learning rate 0 on the emulator. The second
step is compared with the prediction, because the first one also distributes the weights. Prediction and emulator use the same model of the
machine; no number was measured on hardware.

``prediction.py --drawn SEED`` compares random networks, machines, inputs and options instead. It exits with 1 if, for any network, the
predicted cycles differ by more than 5 % from the emulated ones, or the predicted bytes of the fullest tile by more than 1 %.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from mixed_nets import Case
from prediction_nets import all_names, case_of

from snnc.backends.poplar.emit import emit_poplar
from snnc.backends.poplar.engine import open_engine
from snnc.compiler.errors import SnncError
from snnc.compiler.ir.plan import Plan
from snnc.compiler.tiles import make_plan
from snnc.driver.activity import measure_activity
from snnc.report.profile import COUNTED, read_profile

START: Final = r"copy constant\d+ to first_clock$"
"""Pattern of the emulator's names for the phases that a plan names ``…: start``; a step has two of them."""
MEMORY: Final[Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "variables": (("weights", "optimiser", "gradients", "history", "relays", "records"), ("variables",)),
    "exchange buffers": (("exchange",), ("exchange_buffers",)),
    "vertices and tables": (("vertices", "tables"), ("vertex_state", "edge_lists", "constants")),
    "code and stack": (("code",), ("code", "control_code", "stack", "exchange_code")),
}
"""Kinds of memory in the output: the categories of a plan and the categories of the emulator that each consists of."""
LIMITS: Final = {"cycles": 0.05, "peak bytes": 0.01}
"""Maximum accepted deviations of predicted from emulated numbers of drawn networks, relative to the emulated ones."""


def compare(case: Case) -> dict[str, Any]:
    counted = measure_activity(case.dropping or case.program, case.inputs, "the same inputs")
    measured = {"activity": counted.mean, **counted.measured}
    plan = make_plan(case.program, case.target, steps=case.steps, batch=case.batch, **measured, **dict(case.options))
    labels = np.random.default_rng(0).integers(0, case.classes, case.batch)
    with tempfile.TemporaryDirectory() as folder:
        engine = open_engine(emit_poplar(case.program, plan, Path(folder) / "project"))
        profiles = []
        for _ in range(2):
            engine.train_batch(dict(case.inputs), labels, 0.0)
            profiles.append(engine.profile()["emulator"])
    return row(plan, *profiles)


def row(plan: Plan, before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return the predicted and the emulated cost of one step; the emulated cost of a phase is the difference of two profiles."""
    memory = {name: np.array(tiles) for name, tiles in after["per_tile"]["memory"].items()}
    # Variables and exchange buffers at the tile's peak.
    memory |= {name: np.array(after["per_tile"]["peak"][name]) for name in ("variables", "exchange_buffers", "total")}
    planned = {name: np.array(tiles) for name, tiles in plan.memory.items()}
    fullest = int(memory["total"].argmax())
    return {
        "tiles": sum(p.tiles for p in plan.populations),
        "replicas": [p.replicas for p in plan.populations],
        "cycles": (plan.cycles, after["cycles_last_run"]),
        "peak bytes": (max(plan.tile_memory), int(memory["total"].max())),
        "memory": {
            kind: (int(sum(planned[name][fullest] for name in ours)), int(sum(memory[name][fullest] for name in theirs)))
            for kind, (ours, theirs) in MEMORY.items()
        },
        "phases": phases(plan, [_difference(a, b) for a, b in zip(before["steps"], after["steps"], strict=True)]),
    }


def _difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value - before[name] if isinstance(value, int | float) else value for name, value in after.items()}


def phases(plan: Plan, steps: list[dict[str, Any]]) -> dict[str, dict[str, dict[str, float]]]:
    """Return, by phase, the predicted and emulated compute, sync and exchange cycles of all its runs in a step."""
    read = read_profile(plan, {"steps": steps})
    assert read is not None
    starts, compared = iter([step for step in steps if re.match(START, step["name"])]), {}
    for phase in plan.phases:
        start_step = next(starts, {}) if phase.name.endswith(": start") else {}
        counted = {kind: float(sum(start_step.get(name, 0) for name in names)) for kind, names in COUNTED.items()}
        predicted = {kind: phase.runs * float(getattr(phase, kind)) for kind in COUNTED}
        compared[phase.name] = {"predicted": predicted, "emulated": dict(read.phases.get(phase.name, counted))}
    return compared


def show(name: str, row: Mapping[str, Any]) -> None:
    print(f"\n{name}: {row['tiles']} tiles, replicas {row['replicas']}")
    print(f"  {'':42s}{'predicted':>14s}{'emulated':>14s}{'error':>9s}")
    _line("cycles", *row["cycles"])
    for phase, both in row["phases"].items():
        _line(f"  {phase}", sum(both["predicted"].values()), sum(both["emulated"].values()))
    _line("bytes of the fullest tile", *row["peak bytes"])
    for kind, both in row["memory"].items():
        _line(f"  {kind} (of the emulated fullest)", *both)


def _line(what: str, predicted: float, emulated: float) -> None:
    print(f"  {what:42s}{predicted:14,.0f}{emulated:14,.0f}{_error(predicted, emulated):>9s}")


def _error(predicted: float, emulated: float) -> str:
    return f"{100 * (predicted / emulated - 1):+.1f} %" if emulated else "-"


def table(rows: Mapping[str, Mapping[str, Any]]) -> None:
    print(f"\n{'net':24s}{'predicted':>14s}{'emulated':>14s}{'error':>9s}{'bytes':>12s}{'emulated':>12s}{'error':>9s}  worst phase")
    for name, one in rows.items():
        cycles, peak = one["cycles"], one["peak bytes"]
        sums = {phase: [sum(both[kind].values()) for kind in ("predicted", "emulated")] for phase, both in one["phases"].items()}
        worst = max(sums, key=lambda phase: abs(sums[phase][0] - sums[phase][1]))
        share = 100 * (sums[worst][0] - sums[worst][1]) / cycles[1]
        line = f"{name:24s}{cycles[0]:14,.0f}{cycles[1]:14,.0f}{_error(*cycles):>9s}{peak[0]:12,d}{peak[1]:12,d}{_error(*peak):>9s}"
        print(f"{line}  {worst}: {share:+.1f} % of the step")


def drawn(seed: int, first: int, end: int) -> list[str]:
    """Return the names of networks `first` to `end` - 1 of the 10,000 that can be drawn from `seed`.

    Networks with even numbers (``mixed``) have dense, sparse and convolutional connections, those with odd numbers only dense ones.
    """
    return [f"{'random' if number % 2 else 'mixed'}:{10_000 * seed + number}" for number in range(first, end)]


def outside(row: Mapping[str, tuple[float, float]]) -> list[str]:
    return [
        f"{what}: predicted {row[what][0]:,.0f}, emulated {row[what][1]:,.0f}, {_error(*row[what])}"
        for what, limit in LIMITS.items()
        if abs(row[what][0] - row[what][1]) > limit * row[what][1]
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nets", nargs="*", help=f"some of: {', '.join(all_names())}")
    parser.add_argument("--json", type=Path, help="write all numbers to this file")
    parser.add_argument("--drawn", type=int, metavar="SEED", help="compare networks that are drawn from this seed")
    parser.add_argument("--first", type=int, default=0, help="number of the first drawn network")
    parser.add_argument("--end", type=int, default=30, help="number after that of the last drawn network")
    chosen = parser.parse_args()
    names = chosen.nets or all_names() if chosen.drawn is None else drawn(chosen.drawn, chosen.first, chosen.end)
    rows = {}
    for name in names:
        try:
            rows[name] = compare(case_of(name))
        except SnncError as error:
            print(f"\n{name}: {error.text}")
            continue
        if chosen.drawn is None:
            show(name, rows[name])
        else:
            print(f"{name}: {'; '.join(outside(rows[name])) or 'as predicted'}", flush=True)
    table(rows)
    if chosen.json:
        chosen.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    if chosen.drawn is not None:
        failed = [name for name, one in rows.items() if outside(one)]
        print(f"{len(rows) - len(failed)} of {len(rows)} networks within 5 % of cycles and 1 % of bytes; outside: {failed}")
        raise SystemExit(bool(failed))


if __name__ == "__main__":
    main()
