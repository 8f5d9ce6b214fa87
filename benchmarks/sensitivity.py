"""Headline ratios of the predictions, and how they change if one group of the cost model's coefficients changes by 30 %.

``benchmarks/scripts/prediction/coefficient_sensitivity.py`` maps the networks onto changed machines. This module defines the groups and
the ratios, and reads the results.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from snnc.benchmarks.measure import DENSE, PUBLISHED
from snnc.benchmarks.reproduce.measured import measured_steps

Group: TypeAlias = Literal["vertices", "exchange rate", "fragments", "barriers", "links and host"]
Key: TypeAlias = tuple[str, str, str, float]
"""Network, strategy, group, factor."""

SCALED: Final[Mapping[str, tuple[str, ...]]] = {
    "exchange rate": ("/exchange_bytes_per_cycle",),
    "fragments": ("fragment_cycles",),
    "barriers": ("sync_cycles", "superstep_cycles", "link_sync_cycles"),
    "links and host": ("/links.bytes_per_second", "/host.bytes_per_second", "/streaming.bytes_per_second"),
}
"""Keys of a machine file that are multiplied by a group's factor; keys with a leading slash are rates, which are divided by it."""
VERTICES: Final = "vertices"
"""Group of the cycles of vertices, which are not in the machine file."""
GROUPS: Final = (VERTICES, *SCALED)
FACTORS: Final = (1.3, 0.7)
"""Factors by which the costs of a group are multiplied."""
BASE: Final = "none"
"""Group of a result with unchanged coefficients."""


@dataclass(frozen=True)
class Ratio:
    """A headline ratio of the times of two training steps."""

    title: str
    """Name in tables."""
    above: tuple[str, str]
    """Network and strategy whose predicted time is the numerator."""
    below: tuple[str, str] | float
    """Denominator: a network and strategy, or a time in milliseconds; 0.0: the time of the network `above` in the published log."""
    short: str = ""
    """Name on an axis."""


TUNED_GPU: Final = next(step.ms for step in measured_steps() if step.net == "w1-5" and step.program == "prototype")
"""Milliseconds of a training step of W1 on a GPU, measured with a hand-written program for this network."""
RATIOS: Final = (
    Ratio(
        "dense program / sparse program (nmnist-h3, activity 0.5 %)", ("nmnist-h3-a5", DENSE), ("nmnist-h3-a0.5", "snnc"), "dense / sparse"
    ),
    Ratio("published program / snnc's (logged-h2-a1)", ("logged-h2-a1", PUBLISHED), ("logged-h2-a1", "snnc"), "published / snnc"),
    Ratio("model of the published program / its log (logged-h2-a1)", ("logged-h2-a1", PUBLISHED), 0.0, "model / log"),
    Ratio("model of the published program / its log (logged-h5-a10)", ("logged-h5-a10", PUBLISHED), 0.0, "model / log, h5"),
    Ratio(f"IPU, predicted / tuned GPU program, measured (W1, {TUNED_GPU:g} ms)", ("w1", "snnc"), TUNED_GPU, "IPU / tuned GPU"),
    Ratio(
        "weak scaling to 16 IPUs, efficiency (shd-n2, activity 5 %)", ("shd-x1-n2-a5", "snnc"), ("shd-x16-n2-a5", "snnc"), "weak scaling"
    ),
)
"""Ratios on which the claims of ``snnc reproduce`` depend."""


def by_key(rows: Iterable[dict[str, Any]]) -> dict[Key, dict[str, Any]]:
    """Return the rows by :data:`Key`."""
    return {(row["net"], row["strategy"], row["group"], row["factor"]): row for row in rows}


def ratio_of(ratio: Ratio, results: Mapping[Key, Mapping[str, Any]], group: str, factor: float) -> float | None:
    """Return the ratio under changed coefficients; None if a time is missing."""
    above = results.get((*ratio.above, group, factor), {})
    below = results.get((*ratio.below, group, factor), {}).get("ms") if isinstance(ratio.below, tuple) else ratio.below
    below = above.get("logged_ms") if below == 0 else below
    return above["ms"] / below if above.get("ms") and below else None
