"""Recorded spikes as data for pictures: binned rasters, activity over time, and the activity that the plan assumed."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from snnc.compiler.ir.plan import Plan
from snnc.report.recording import Recording, Train

MAX_ROWS, MAX_COLUMNS, MIN_ROWS = 128, 400, 16
"""Size limits of a raster in bins: rows, columns, and the smallest limit on rows if a page has many rasters."""
MAX_BINS: Final = 1_000_000
"""Maximum number of bins of all rasters on a page together."""
MARGIN: Final = 0.1
"""Fraction by which the measured activity may exceed the plan's before a warning appears."""


@dataclass(frozen=True)
class LayerActivity:
    """Activity of one layer.

    Attributes
    ----------
    measured, assumed
        Mean number of spikes per neuron (or element of an input) and step, in the recording, and as assumed by the plan (None without
        a plan).
    peak, capacity
        Maximum number of spikes in one step of one sample, and capacity of one window (None if spikes are not sent in windows).
    silent, constant
        Number of neurons that never fired in any sample, and that fired in every step of every sample.
    over_time
        The same mean for each step, or for each bin of steps.
    warning
        Text on what exceeds the plan's assumptions; empty if nothing does.
    """

    buffer: str
    owner: str
    label: str
    width: int
    measured: float
    assumed: float | None
    peak: int
    capacity: int | None
    silent: int
    constant: int
    over_time: tuple[float, ...]
    warning: str


def activity(plan: Plan | None, recording: Recording) -> tuple[LayerActivity, ...]:
    """Return the activity of each layer, compared with the activity assumed by `plan`."""
    return tuple(_layer_activity(plan, recording, train) for train in recording.trains)


def _layer_activity(plan: Plan | None, recording: Recording, train: Train) -> LayerActivity:
    counts = recording.counts(train)
    spikes = np.bincount(train.ids, minlength=train.width)
    measured = len(train.ids) / (recording.steps * recording.samples * train.width)
    assumed = None if plan is None else plan.activity.get(train.buffer)
    peak = int(counts.max())
    bus = next((b for b in (() if plan is None else plan.buses) if b.buffer == train.buffer and b.kind == "events"), None)
    edges = np.linspace(0, recording.steps, min(recording.steps, MAX_COLUMNS) + 1).astype(int)
    curve = np.add.reduceat(counts.mean(axis=1), edges[:-1]) / np.diff(edges) / train.width
    return LayerActivity(
        train.buffer,
        train.owner,
        train.label,
        train.width,
        measured,
        assumed,
        peak,
        None if bus is None else bus.capacity,
        int((spikes == 0).sum()),
        int((spikes == recording.steps * recording.samples).sum()),
        tuple(round(float(value), 5) for value in curve),
        _warning(measured, assumed, peak, bus.capacity if bus else None, bus.mode if bus else ""),
    )


def recording_data(plan: Plan | None, recording: Recording | None) -> dict[str, Any] | None:
    """Return a recording and its activity as JSON types; None without a recording."""
    if recording is None:
        return None
    return {
        "source": recording.source,
        "steps": recording.steps,
        "samples": recording.samples,
        "activity": [asdict(fired) for fired in activity(plan, recording)],
    }


def _warning(measured: float, assumed: float | None, peak: int, capacity: int | None, mode: str) -> str:
    found = []
    if assumed is not None and measured > (1 + MARGIN) * assumed:
        found.append(f"fires {100 * measured:.3g} %, but the plan assumes {100 * assumed:.3g} %: predicted cycles are too low")
    if capacity is not None and peak > capacity:
        more = "the rest is dropped" if mode == "drop" else "further windows follow"
        found.append(f"{peak:,} spikes in one step, but a window has room for {capacity:,}: {more}")
    return "; ".join(found)


def rasters(recording: Recording, sample: int = 0) -> list[dict[str, Any]]:
    """Bin the spikes of one sample; each raster has ``rows`` bins of neurons and ``columns`` bins of steps.

    ``places`` are the flat indices of bins with spikes, ``counts`` their spikes; ``full`` is the number of spikes that a bin can contain.
    """
    columns = min(recording.steps, MAX_COLUMNS)
    rows = max(MIN_ROWS, min(MAX_ROWS, MAX_BINS // max(1, columns * len(recording.trains))))
    found = []
    for train in recording.trains:
        in_sample = train.samples == sample
        high = min(rows, train.width)
        places = (train.ids[in_sample] * high // train.width) * columns + train.steps[in_sample] * columns // recording.steps
        filled, counts = np.unique(places, return_counts=True)
        full = -(-train.width // high) * -(-recording.steps // columns)
        found.append(
            {
                "label": train.label,
                "owner": train.owner,
                "width": train.width,
                "rows": high,
                "columns": columns,
                "places": filled,
                "counts": counts,
                "full": full,
            }
        )
    return found
