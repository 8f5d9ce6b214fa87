"""Predict the gain of each optional feature of the mapper: ``python benchmarks/scripts/prediction/mapping_features.py [FEATURE ...]``.

Some benchmark networks are planned as usual, then with one feature disabled at a time. Cycles are predictions for a training step with
its host transfers; the gain is the additional time without the feature, 0 % if the mapper does not choose it. ``misfit`` marks a network
that does not fit its machine (in the row of a feature: without it). docs/decisions/0028-mapping-features.md has the results, also those of
deleted features.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from math import exp, log
from typing import Any, Final
from unittest.mock import patch

from snnc.benchmarks.benchmark import Benchmark
from snnc.benchmarks.measure import mapped_plan
from snnc.benchmarks.nets import benchmark
from snnc.compiler.tiles.errors import TooBigError
from snnc.compiler.tiles.placement.placement import _shared_out

TILES: Final = "snnc.compiler.tiles."
SPARSE: Final = ("dvs-conv", "random-10k", "clusters-10k")
"""Networks with indexed connections."""
DENSE: Final = ("w1", "w1-ff", "w2", "logged-h2-a10", "shd-n2-b3-a5", "shd-n8-b3-a5", "shd-x2-n2-a5")
ALL: Final = (*DENSE, *SPARSE)
LARGE: Final = {"w2-long": replace(benchmark("w2"), name="w2-long", steps=1000)}
"""Networks that do not fit without the feature "segments", which includes streaming memory."""


@dataclass(frozen=True)
class Feature:
    """An optional feature of the mapper: an alternative that it may choose."""

    function: str
    """Path of the function or constant that offers the alternative, relative to ``snnc.compiler.tiles``."""
    instead: Any
    """Its replacement, which does not offer the alternative."""
    nets: tuple[str, ...] = ALL
    """Benchmark networks that can use it."""


FEATURES: Final[Mapping[str, Feature]] = {
    "relays beside neurons": Feature("mapper._fused", lambda search: iter(()), DENSE),
    "bits on relays": Feature("request_search.with_bits", lambda problem: iter([problem])),
    "gradients in windows": Feature("request.MappingRequest._windowed", lambda request: (frozenset(),), DENSE),
    "windows by activity": Feature("request.MappingRequest._sizes", lambda request, windowed: iter([(None, None)])),
    "even shares of samples": Feature("placement.choices._unpaired", lambda *cut: iter(())),
    "shared tiles": Feature("search.search.sharing_tiles", lambda *problem: [], SPARSE),
    "orders of channels": Feature("planning.ordering.movable", lambda program: False, ("dvs-conv",)),
    "parts": Feature("planning.parting._candidate_parts", lambda *parter: iter(()), ("random-10k", "clusters-10k")),
    "skipping of zeros": Feature("mapped.network.reads_sparse_values", lambda *connection: False, ("dvs-conv",)),
    "balance of parts": Feature("placement.placement._shared_out", lambda *given, balanced: _shared_out(*given, balanced=False)),
    "local search": Feature("mapper.EFFORT", 0),
    "segments": Feature("request.MappingRequest.streaming_choices", lambda request: (), tuple(LARGE)),
}


def cycles(case: Benchmark, feature: Feature | None = None) -> float | None:
    """Return the cycles of a training step with its host transfers, without `feature`; None if the network does not fit."""
    with ExitStack() as stack:
        if feature is not None:
            stack.enter_context(patch(TILES + feature.function, feature.instead))
        try:
            plan = mapped_plan(case)
        except TooBigError:
            return None
    return plan.seconds_with_host * plan.target.clock_hz


def main(names: list[str]) -> None:
    """Print a line per network and feature, and geometric means over :data:`ALL`; 0 % for networks that cannot use it or do not fit."""
    chosen = {name: feature for name, feature in FEATURES.items() if not names or name in names}
    nets = dict.fromkeys(net for feature in chosen.values() for net in feature.nets)
    ratios: dict[str, dict[str, float]] = {name: {} for name in chosen}
    for net in nets:
        case = LARGE[net] if net in LARGE else benchmark(net)
        usual = cycles(case)
        print(f"{net:14} {'usual':24} {'misfit' if usual is None else f'{usual:,.0f}'}", flush=True)
        for name, feature in chosen.items():
            if usual is None or net not in feature.nets:
                continue
            without = cycles(case, feature)
            gain = "misfit" if without is None else f"{without:,.0f} {100 * (without / usual - 1):+.1f} %"
            ratios[name][net] = 1.0 if without is None else without / usual
            print(f"{net:14} {name:24} {gain}", flush=True)
    for name, feature_ratios in ratios.items():
        mean = exp(sum(log(feature_ratios.get(net, 1.0)) for net in ALL) / len(ALL))
        largest = max(feature_ratios.values(), default=1.0)
        print(f"{name:24} {100 * (mean - 1):+.1f} % in the geometric mean over {len(ALL)} networks, at most {100 * (largest - 1):+.1f} %")


if __name__ == "__main__":
    main(sys.argv[1:])
