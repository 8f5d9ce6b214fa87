"""Compute how rankings of strategies and headline ratios change if coefficients of the cost model change by 30 %.

    python benchmarks/scripts/prediction/coefficient_sensitivity.py --json FILE

Each group of coefficients of the cost model is raised and lowered, and every network is mapped again onto the changed machine. Results are
stored in FILE, one per line. A run computes only the missing ones and prints the tables; ``--tables`` only prints them. All times are
predicted.

The coefficients of all groups are numbers in the machine file, except the cycles of vertices. To multiply these by f, the script divides
all other costs of the machine by f, and multiplies the predicted time of the step by f.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from snnc.benchmarks.measure import DENSE, PUBLISHED, measure
from snnc.benchmarks.nets import benchmark
from snnc.benchmarks.sensitivity import BASE, FACTORS, GROUPS, RATIOS, SCALED, VERTICES, Key, Ratio, by_key, ratio_of
from snnc.compiler.machines import load_target
from snnc.compiler.machines.target import Target

RANKED: Final = ("w1", "w1-ff", "shd-h2-a2.5", "nmnist-h2-a1", "dvs-conv", "clusters-10k")
"""Networks for which the strategies are ranked."""
STRATEGIES: Final = ("snnc", "linear", "random", "greedy", "metis")
TIED: Final = 1e-3
"""Strategies share a rank if the relative difference of their step times is smaller."""


def changes(machine: Target, group: str, factor: float) -> dict[str, float]:
    """Return the keys of a machine file that change when the cost of `group` is multiplied by `factor`, with their new values.

    For the group of vertices, all other groups are divided by `factor`; :func:`time_factor` corrects the time.
    """
    if group == BASE:
        return {}
    if group == VERTICES:
        return {key: value for other in SCALED for key, value in changes(machine, other, 1 / factor).items()}
    changed = {}
    for key in SCALED[group]:
        name = key.removeprefix("/")  # the slash marks a rate, which is divided by the factor
        value: Any = machine
        for part in name.split("."):
            value = getattr(value, part, None)
        if value is not None:
            changed[name] = value / factor if key.startswith("/") else value * factor
    return changed


def time_factor(group: str, factor: float) -> float:
    return factor if group == VERTICES else 1.0


def machine_file(base: str, changed: Mapping[str, float]) -> str:
    top = [f"{key} = {value!r}" for key, value in changed.items() if "." not in key]
    tables = [f"[{key.split('.')[0]}]\n{key.split('.')[1]} = {value!r}" for key, value in changed.items() if "." in key]
    return "\n".join([f'name = "{base}"', f'extends = "{base}"', *top, *tables, ""])


def predicted_row(net: str, strategy: str, group: str, factor: float) -> dict[str, Any]:
    base = benchmark(net).target
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "machine.toml"
        path.write_text(machine_file(base, changes(load_target(base), group, factor)))
        row = measure(net, strategy, str(path))
    milliseconds = row["step_ms"] * time_factor(group, factor) if row.get("fits") else None
    return {"net": net, "strategy": strategy, "group": group, "factor": factor, "ms": milliseconds, "logged_ms": row.get("logged_ms")}


def wanted(ranked: Sequence[str] = RANKED, ratios: Sequence[Ratio] = RATIOS) -> Iterator[Key]:
    """Yield the keys of all results that the tables need, network by network, the unchanged machine first."""
    pairs = [(net, strategy) for net in ranked for strategy in STRATEGIES]
    pairs += [pair for ratio in ratios for pair in (ratio.above, ratio.below) if isinstance(pair, tuple)]
    for net, strategy in dict.fromkeys(pairs):
        yield net, strategy, BASE, 1.0
        for group in GROUPS:
            for factor in FACTORS:
                yield net, strategy, group, factor


def ranks(milliseconds: Mapping[str, float | None]) -> dict[str, int]:
    """Return the rank of each strategy that fits, the fastest first; tied strategies share the better rank."""
    by_time = sorted((ms, name) for name, ms in milliseconds.items() if ms is not None)
    placed: dict[str, int] = {}
    for number, (ms, name) in enumerate(by_time, 1):
        before = by_time[number - 2] if number > 1 else None
        placed[name] = placed[before[1]] if before and ms <= before[0] * (1 + TIED) else number
    return placed


def rank_table(results: Mapping[Key, Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines of a table of snnc's margin over the best baseline, and of the changes that alter a rank.

    Only strategies with results for all changes of a network are ranked.
    """
    yield "| network | order | best baseline / snnc | smallest and largest ratio with ±30 % | changes that alter the order |"
    yield "|---|---|---|---|---|"
    for net in RANKED:
        times = {case: _times(results, net, *case) for case in [(BASE, 1.0), *((g, f) for g in GROUPS for f in FACTORS)]}
        base = times.pop((BASE, 1.0))
        times = {case: ms for case, ms in times.items() if "snnc" in ms and len(ms) > 1}
        shared = {name for name in base if all(name in ms for ms in times.values())}
        if "snnc" not in shared or len(shared) < 2:
            continue
        base, *changed = ({name: ms for name, ms in of_case.items() if name in shared} for of_case in (base, *times.values()))
        times = dict(zip(times, changed, strict=True))
        order, margins = ranks(base), [_margin(of_case) for of_case in times.values()]
        text = ", ".join(f"{rank} {name}" for name, rank in sorted(order.items(), key=lambda item: (item[1], item[0])))
        other = [f"{group} x {factor}" for (group, factor), of_case in times.items() if ranks(of_case) != order]
        yield f"| {net} | {text} | {_margin(base):.2f} | {min(margins):.2f} to {max(margins):.2f} | {', '.join(other) or 'nothing'} |"


def _times(results: Mapping[Key, Mapping[str, Any]], net: str, group: str, factor: float) -> dict[str, float]:
    times = {name: results.get((net, name, group, factor), {}).get("ms") for name in STRATEGIES}
    return {name: ms for name, ms in times.items() if ms is not None}


def _margin(milliseconds: Mapping[str, float]) -> float:
    return min(ms for name, ms in milliseconds.items() if name != "snnc") / milliseconds["snnc"]


def ratio_table(results: Mapping[Key, Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines of a table of headline ratios (:data:`RATIOS`): as predicted, and with each group 30 % higher and lower."""
    yield f"| ratio | as predicted | {' | '.join(GROUPS)} |"
    yield "|---" * (2 + len(GROUPS)) + "|"
    for ratio in RATIOS:
        base = ratio_of(ratio, results, BASE, 1.0)
        if base is None:
            continue
        cells = []
        for group in GROUPS:
            moved = [ratio_of(ratio, results, group, factor) for factor in FACTORS]
            cells.append(" / ".join("-" if value is None else f"{value:.2f}" for value in moved))
        yield f"| {ratio.title} | {base:.2f} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, required=True, help="results, one per line; existing ones are kept")
    parser.add_argument("--tables", action="store_true", help="only print the tables")
    parser.add_argument("--only", nargs="+", metavar="NET", help="map these networks only")
    parser.add_argument("--strategies", nargs="+", default=(*STRATEGIES, DENSE, PUBLISHED), help="map with these strategies only")
    arguments = parser.parse_args()
    results = by_key(map(json.loads, arguments.json.read_text().splitlines() if arguments.json.exists() else ()))
    for key in wanted():
        skipped = (arguments.only and key[0] not in arguments.only) or key[1] not in arguments.strategies
        if arguments.tables or key in results or skipped:
            continue
        results[key] = row = predicted_row(*key)
        with arguments.json.open("a") as file:
            file.write(json.dumps(row) + "\n")
    print("\n".join((*rank_table(results), "", *ratio_table(results))))


if __name__ == "__main__":
    main()
