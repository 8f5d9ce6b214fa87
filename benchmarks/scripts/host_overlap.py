"""A step with the next inputs coming beside it, and without.

Run ``python benchmarks/scripts/host_overlap.py [--io-tiles N] [--plan-only] [NET ...]``. Networks are those of ``prediction_nets.py``.
Each is mapped with the events that its inputs give on the reference, without overlap and with, emitted, and run on the emulator for two
steps at learning rate 0, the second with inputs that were sent during the first. Prints milliseconds of a step with the transfers that it
waits for, predicted and emulated, and whether all losses are equal. Nothing was measured on hardware.
"""

from __future__ import annotations

import argparse
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
from prediction_nets import Case, case_of

from snnc.backends.poplar.emit import emit_poplar
from snnc.backends.poplar.engine import open_engine
from snnc.compiler.ir.plan import Plan
from snnc.compiler.machines.target import Target
from snnc.compiler.tiles import make_plan
from snnc.compiler.tiles.host_io.host_overlap import OverlapRequest, plan_overlap
from snnc.driver.activity import measure_activity

NETS = ("w1", "w1-ff", "logged-h2-a1")


def plans(case: Case, io_tiles: int | None) -> tuple[Plan, Plan]:
    """Map without overlap, then with."""
    seen = measure_activity(case.program, case.inputs, "the same inputs")
    measured = {"activity": seen.mean, **seen.measured}
    make = partial(make_plan, case.program, steps=case.steps, batch=case.batch, **measured, **dict(case.options))
    off = make(case.target)

    def planned(target: Target) -> Plan:
        return off if target == case.target else make(target)

    return off, plan_overlap(planned, case.program, case.target, OverlapRequest("on", io_tiles))


def emulated(case: Case, plan: Plan) -> tuple[float, float, list[float]]:
    """Cycles of a step with what it waits for, cycles of transfers beside it, and losses."""
    labels = np.random.default_rng(0).integers(0, case.classes, case.batch)
    behind = {name: np.array(values) for name, values in case.inputs.items()}
    with tempfile.TemporaryDirectory() as folder:
        engine = open_engine(emit_poplar(case.program, plan, Path(folder) / "project"))
        engine.offer(behind, labels)
        losses = [engine.train_batch(dict(case.inputs), labels, 0.0), engine.train_batch(behind, labels, 0.0)]
        profile = engine.profile()["emulator"]
    hidden = profile["host_cycles_beside_last_run"]
    return profile["cycles_last_run"] + profile["host_cycles_last_run"] - hidden, hidden, losses


def main() -> None:
    """Print a line for each network."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nets", nargs="*", default=NETS)
    parser.add_argument("--io-tiles", type=int, help="tiles of each chip set aside; by default as many as are predicted to be best")
    parser.add_argument("--plan-only", action="store_true", help="predict only")
    arguments = parser.parse_args()
    for name in arguments.nets:
        case = case_of(name)
        pair = plans(case, arguments.io_tiles)
        clock = case.target.clock_hz
        off, on = (1e3 * plan.seconds_with_host for plan in pair)
        overlap = pair[1].overlap
        assert overlap is not None
        print(f"{name}: {overlap.tiles} tiles set aside, transfer beside {overlap.beside}: {1e3 * overlap.cycles / clock:.3f} ms hidden")
        print(f"  predicted {off:.4f} ms without, {on:.4f} ms with: {100 * (1 - on / off):+.1f} % less", flush=True)
        if arguments.plan_only:
            continue
        (first, _, losses), (second, hidden, others) = (emulated(case, plan) for plan in pair)
        off, on = 1e3 * first / clock, 1e3 * second / clock
        print(f"  emulated  {off:.4f} ms without, {on:.4f} ms with: {100 * (1 - on / off):+.1f} % less")
        print(f"  {1e3 * hidden / clock:.3f} ms hidden; losses {'equal' if losses == others else 'DIFFER'}", flush=True)


if __name__ == "__main__":
    main()
