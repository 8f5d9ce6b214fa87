"""Compare predicted step times of the published IPU program (:mod:`snnc.benchmarks.published`) with its log, for 12 networks.

    python benchmarks/scripts/prediction/logged.py [--json FILE]

The log records neither the clock nor whether adjacent copies are merged, so both cases are predicted. Predictions are also made for three
costs of a fragment (a contiguous piece of memory in an exchange), with the simulated activity and with every capacity in use. The tables
show the capacity K, the logged milliseconds, for each hidden layer the simulated numbers of spikes (n0) and of neurons that receive a
gradient (n1), and the predicted milliseconds with their ratio to the log. All times but the logged ones are predicted.

Nothing in the model is fitted to the log. The model's constants and their sources:

==================================  ==================================================================================
sizes, layouts, loops, supersteps   public code of ``jrfinkbeiner/graphcore_snn``, commit 2b0fe90 (the version that ran)
vertex start, sync, superstep       target file (PopLibs performance estimates, Poplar's IPU model)
9 cycles per fragment               target file: the fixed rule; public sources give values from 6 to 20
elementwise, copies, slices         PopLibs performance estimates (:mod:`snnc.benchmarks.published.options`)
mappings of sliced, linear tensors  ``createSliceableTensor`` and ``calcLinearTileMapping`` of PopLibs 3.4
cycles of compiled loops            mean of naive and ideal code (:class:`~snnc.benchmarks.published.options.LoopCost`)
activity                            :func:`~snnc.benchmarks.published.simulate`, weights within the limits that the log prints
==================================  ==================================================================================
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, Final

from snnc.benchmarks.log import LoggedRun, logged_runs
from snnc.benchmarks.nets import benchmark
from snnc.benchmarks.published import PublishedNet, PublishedOptions, predict_published
from snnc.compiler.machines import load_target

TARGETS: Final = ("gc200", "bow")
"""Machines with clocks of 1.33 and 1.85 GHz, otherwise equal. The second is more likely: the log was committed together with "gc bow"
evaluations on the manufacturer's machines (commits 116eaec to e4fd993)."""
FRAGMENTS: Final = (6.0, 9.0, 20.0)
"""Cycles per fragment for which predictions are made."""
RULE: Final = 9.0
"""Cycles per fragment in the target file."""


@cache
def simulated_net(name: str) -> PublishedNet:
    """Return a logged network with the activity that was counted in a simulation of it."""
    net = benchmark(name).published
    assert net is not None
    return net


def predictions(run: LoggedRun) -> Iterator[dict[str, Any]]:
    """Yield all predictions of a logged run as JSON data; all times except ``logged_ms`` are predicted."""
    simulated = simulated_net(run.name)
    for activity, net in (("simulated", simulated), ("n = K", simulated.full())):
        for target, merged, fragment in product(TARGETS, (True, False), FRAGMENTS):
            options = PublishedOptions(fragment_cycles=fragment, merge_copies=merged)
            prediction = predict_published(net, load_target(target), options)
            yield {
                "net": run.name,
                "target": target,
                "strategy": "published",
                "activity": activity,
                "merged_copies": merged,
                "fragment_cycles": fragment,
                "clock_ghz": prediction.target.clock_hz / 1e9,
                "step_cycles": prediction.step_cycles,
                "predicted_ms": prediction.milliseconds(),
                "logged_ms": run.logged_ms,
                "ratio": prediction.milliseconds() / run.logged_ms,
                "n0": [layer.spikes for layer in net.layers],
                "n1": [layer.gradients for layer in net.layers],
            }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="file for all predictions")
    arguments = parser.parse_args()
    runs = logged_runs()
    rows = [row for run in runs for row in predictions(run)]
    for merged, activity in product((True, False), ("simulated", "n = K")):
        copies = "merged" if merged else "not merged"
        print(f"\nactivity: {activity}; adjacent copies {copies}; ms predicted at {_list(FRAGMENTS)} cycles per fragment")
        _table(runs, [row for row in rows if row["activity"] == activity and row["merged_copies"] == merged])
    _print_categories(runs[0])
    _print_categories(runs[-1])
    if arguments.json:
        arguments.json.write_text(json.dumps({"rows": rows}, indent=1))


def _list(numbers: tuple[float, ...]) -> str:
    return "/".join(f"{n:g}" for n in numbers)


def _table(runs: tuple[LoggedRun, ...], rows: list[dict[str, Any]]) -> None:
    heads = "".join(f"{load_target(t).clock_hz / 1e9:>12.2f} GHz  ratio" for t in TARGETS)
    print(f"{'net':15}{'K':>4}  logged ms {'n0/n1 of the hidden layers':42}{heads}")
    for run in runs:
        counts = " ".join(f"{layer.spikes:.0f}/{layer.gradients:.0f}" for layer in simulated_net(run.name).layers[:-1])
        line = f"{run.name:15}{run.capacity[0]:>4}  {_list(run.ms):>9} {counts:42}"
        for target in TARGETS:
            by_fragment = {row["fragment_cycles"]: row for row in rows if row["net"] == run.name and row["target"] == target}
            milliseconds = "/".join(f"{by_fragment[f]['predicted_ms']:.1f}" for f in FRAGMENTS)
            line += f"{milliseconds:>16}  {by_fragment[RULE]['ratio']:5.2f}"
        print(line)
    for target in TARGETS:
        ratios = [row["ratio"] for row in rows if row["target"] == target and row["fragment_cycles"] == RULE]
        near = sum(abs(r - 1) <= 0.3 for r in ratios)
        within = f"{near} of {len(ratios)} within 30 %"
        print(f"  {target}: ratio {min(ratios):.2f} to {max(ratios):.2f} at {RULE:g} cycles per fragment; {within}")


def _print_categories(run: LoggedRun) -> None:
    net = simulated_net(run.name)
    prediction = predict_published(net, load_target("bow"), PublishedOptions(fragment_cycles=RULE))
    print(f"\n{run.name}, cycles per time step (predicted, simulated activity, copies merged):")
    for name, cycles in sorted(prediction.categories.items(), key=lambda item: -item[1]):
        print(f"  {name:32}{cycles / net.steps:10,.0f}")
    size = f"{prediction.program_steps_per_time_step} program steps, {prediction.peak_tile_bytes:,} bytes on the fullest tile"
    print(f"  {'all':32}{prediction.step_cycles / net.steps:10,.0f}   {size}")


if __name__ == "__main__":
    main()
