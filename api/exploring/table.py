"""Points as a table for a terminal."""

from __future__ import annotations

from typing import Final

from snnc.exploring.points import ExplorationPoint

HEAD: Final = (
    f"{'target':10} {'batch':>6} {'activity':>8} {'samples/s':>12} {'step ms':>10} {'of bound':>8} {'peak tile':>10} "
    f"{'tiles':>7} {'IPUs':>4} {'parts':>5} {'took':>7}"
)


def line(point: ExplorationPoint) -> str:
    """Return one row; numbers of cycles and time are predictions."""
    activity = "default" if point.activity is None else f"{100 * point.activity:g} %"
    start = f"{point.target:10} {point.batch:6d} {activity:>8} "
    if point.estimate is None:
        return f"{start}does not fit: {point.reason.split(' Try ')[0].removeprefix('the network does not fit on ')}"
    data = point.estimate.to_data()
    return start + (
        f"{data['samples_per_s']:12,.0f} {data['step_ms']:10.4g} {100 * data['balance']:6.0f} % "
        f"{data['peak_tile_bytes'] / 1024:6,.0f} KiB {data['tiles_used']:7,d} {data['ipus']:4d} "
        f"{max(data['parts'].values(), default=1):5d} {point.point_s:5.2f} s"
    )
