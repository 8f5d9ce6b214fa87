"""Predict the 12 logged nets of arXiv 2311.04386 running the published program.

    python benchmarks/scripts/prediction/logged.py [--json FILE]

For each net, the script prints the capacity K, the logged milliseconds, and for each hidden layer the simulated numbers of spikes (n0) and
of neurons that receive a gradient (n1). It prints the predicted milliseconds at 6, 9 and 20 cycles per fragment for both clocks, and the
ratio to the log at 9 cycles. Then it prints the same numbers with every capacity in use (n0 = n1 = K), the cycles of a time step by
category, and the range of ratios. All times but the logged ones are predicted.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from snnc.benchmarks.calibration import FRAGMENTS, RULE, TARGETS, LoggedPoint, points, predict, simulated_net
from snnc.benchmarks.log import LoggedRun, logged_runs
from snnc.benchmarks.published import PublishedNet


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="file for all predictions")
    arguments = parser.parse_args()
    runs = logged_runs()
    simulated = {run.name: simulated_net(run) for run in runs}
    predictions = list(points(simulated))
    for merged in (True, False):
        for activity in ("simulated", "n = K"):
            copies = "merged" if merged else "not merged"
            print(f"\nactivity: {activity}; adjacent copies {copies}; ms predicted at {_list(FRAGMENTS)} cycles per fragment")
            _table(runs, simulated, [p for p in predictions if p.activity == activity and p.merged_copies == merged])
    _print_categories(runs[0], simulated[runs[0].name])
    _print_categories(runs[-1], simulated[runs[-1].name])
    if arguments.json:
        arguments.json.write_text(json.dumps({"rows": [vars(p) for p in predictions]}, indent=1))


def _list(numbers: tuple[float, ...]) -> str:
    return "/".join(f"{n:g}" for n in numbers)


def _table(runs: tuple[LoggedRun, ...], nets: dict[str, PublishedNet], predictions: list[LoggedPoint]) -> None:
    heads = "".join(f"{next(p.clock_ghz for p in predictions if p.target == t):>12.2f} GHz  ratio" for t in TARGETS)
    print(f"{'net':15}{'K':>4}  logged ms {'n0/n1 of the hidden layers':42}{heads}")
    for run in runs:
        counts = " ".join(f"{layer.spikes:.0f}/{layer.gradients:.0f}" for layer in nets[run.name].layers[:-1])
        line = f"{run.name:15}{run.capacity[0]:>4}  {_list(run.ms):>9} {counts:42}"
        for target in TARGETS:
            by_fragment_cycles = {p.fragment_cycles: p for p in predictions if p.net == run.name and p.target == target}
            line += f"{'/'.join(f'{by_fragment_cycles[f].predicted_ms:.1f}' for f in FRAGMENTS):>16}  {by_fragment_cycles[RULE].ratio:5.2f}"
        print(line)
    for target in TARGETS:
        ratios = [p.ratio for p in predictions if p.target == target and p.fragment_cycles == RULE]
        near = sum(abs(r - 1) <= 0.3 for r in ratios)
        print(
            f"  {target}: ratio {min(ratios):.2f} to {max(ratios):.2f} at {RULE:g} cycles per fragment; {near} of {len(ratios)} within 30 %"
        )


def _print_categories(run: LoggedRun, net: PublishedNet) -> None:
    """Print the cycles of a time step by category."""
    prediction = predict(net, "bow", merged=True)
    print(f"\n{run.name}, cycles per time step (predicted, simulated activity, copies merged):")
    for name, cycles in sorted(prediction.categories.items(), key=lambda item: -item[1]):
        print(f"  {name:32}{cycles / net.steps:10,.0f}")
    size = f"{prediction.step_supersteps} program steps, {prediction.peak_tile_bytes:,} bytes on the fullest tile"
    print(f"  {'all':32}{prediction.step_cycles / net.steps:10,.0f}   {size}")


if __name__ == "__main__":
    main()
