"""Recorded spikes as data for pictures: binned rasters, activity over time, and the activity that the plan assumed."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from snnc.compiler.ir.plan import BusPlan, Plan
from snnc.report.recording import Recording, Train

MAX_ROWS, MAX_COLUMNS, MIN_ROWS = 128, 400, 16
"""Size limits of a raster in bins: rows, columns, and the smallest limit on rows if a page has many rasters."""
MAX_BINS: Final = 1_000_000
"""Maximum number of bins of all rasters on a page together, unless even ``MIN_ROWS`` rows per raster exceed it."""
MARGIN: Final = 0.1
"""Fraction by which the measured activity may exceed the plan's before a warning appears."""


def activity(plan: Plan | None, recording: Recording) -> list[dict[str, Any]]:
    """Return the activity of each layer as JSON types; docs/reference/inspect.md explains the keys."""
    return [_layer_activity(plan, recording, train) for train in recording.trains]


def _layer_activity(plan: Plan | None, recording: Recording, train: Train) -> dict[str, Any]:
    counts = recording.counts(train)
    spikes = np.bincount(train.ids, minlength=train.width)
    measured = len(train.ids) / (recording.steps * recording.samples * train.width)
    assumed = None if plan is None else plan.activity.get(train.buffer)
    peak = int(counts.max())
    bus = next((b for b in (() if plan is None else plan.buses) if b.buffer == train.buffer and b.kind == "events"), None)
    edges = np.linspace(0, recording.steps, min(recording.steps, MAX_COLUMNS) + 1).astype(int)
    curve = np.add.reduceat(counts.mean(axis=1), edges[:-1]) / np.diff(edges) / train.width
    return {
        **{name: getattr(train, name) for name in ("buffer", "owner", "label", "width")},
        "measured": measured,
        "assumed": assumed,
        "peak": peak,
        "capacity": None if bus is None else bus.capacity,
        "silent": int((spikes == 0).sum()),
        "constant": int((spikes == recording.steps * recording.samples).sum()),
        "over_time": tuple(round(float(value), 5) for value in curve),
        "warning": _warning(measured, assumed, peak, bus),
    }


def recording_data(plan: Plan | None, recording: Recording | None) -> dict[str, Any] | None:
    """Return a recording and its activity as JSON types; None without a recording."""
    if recording is None:
        return None
    return {"source": recording.source, "steps": recording.steps, "samples": recording.samples, "activity": activity(plan, recording)}


def _warning(measured: float, assumed: float | None, peak: int, bus: BusPlan | None) -> str:
    texts = []
    if assumed is not None and measured > (1 + MARGIN) * assumed:
        texts.append(f"fires {100 * measured:.3g} %, but the plan assumes {100 * assumed:.3g} %: predicted cycles are too low")
    if bus is not None and peak > bus.capacity:
        more = "the rest is dropped" if bus.mode == "drop" else "further windows follow"
        texts.append(f"{peak:,} spikes in one step, but a window has room for {bus.capacity:,}: {more}")
    return "; ".join(texts)


def rasters(recording: Recording) -> list[dict[str, Any]]:
    """Bin the spikes of the first sample; each raster has ``rows`` bins of neurons and ``columns`` bins of steps.

    ``places`` are the flat indices of bins with spikes, ``counts`` their spikes; ``full`` is the number of spikes that a bin can contain.
    """
    columns = min(recording.steps, MAX_COLUMNS)
    rows = max(MIN_ROWS, min(MAX_ROWS, MAX_BINS // max(1, columns * len(recording.trains))))
    binned = []
    for train in recording.trains:
        in_sample = train.samples == 0
        high = min(rows, train.width)
        places = (train.ids[in_sample] * high // train.width) * columns + train.steps[in_sample] * columns // recording.steps
        filled, counts = np.unique(places, return_counts=True)
        full = -(-train.width // high) * -(-recording.steps // columns)
        size = {"label": train.label, "width": train.width, "rows": high, "columns": columns, "full": full, "steps": recording.steps}
        binned.append(size | {"places": filled, "counts": counts})
    return binned
