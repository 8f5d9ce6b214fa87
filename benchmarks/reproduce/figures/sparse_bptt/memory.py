"""Figures: memory of all tiles of an IPU by category of data, and a map of its tiles."""

from __future__ import annotations

from typing import Final

from snnc.benchmarks.reproduce.figure import Figure, Point, Results, Row, why_missing
from snnc.benchmarks.reproduce.figures.plans import plan_row

NETS: Final = ("logged-h2-a1", "logged-h2-a5", "logged-h2-a10", "shd-n2-b3-a5", "shd-n8-b3-a5", "shd-n32-b3-a5")
QUICK: Final = ("logged-h2-a1", "shd-n2-b3-a5", "shd-n8-b3-a5")
MAPPED: Final = "nmnist-h3-a5"
MAP_ROW: Final = Row("tile map", {"name": MAPPED})


def _memory_points(results: Results) -> tuple[Point, ...]:
    points = []
    for net in NETS:
        result = results.get(plan_row(net).key, {})
        for kind, size in result.get("memory_bytes", {}).items():
            points.append(Point(f"{kind} (predicted)", "predicted", net, size / 2**20, f"{net}: {size:,} bytes of {kind}", {"net": net}))
    return tuple(points)


def _tile_points(results: Results) -> tuple[Point, ...]:
    result = results.get(MAP_ROW.key)
    if result is None:
        return ()
    if "layers" not in result:
        return (Point("tiles (predicted)", "predicted", MAPPED, None, why_missing(result)),)
    points = []
    for layer in result["layers"]:
        note = (
            f"{layer['neurons']:,} neurons on {layer['tiles']:,} tiles; {layer['mean_bytes'] / 2**10:,.0f} KiB per tile on average, "
            f"{layer['largest_bytes'] / 2**10:,.0f} KiB on the fullest"
        )
        points.append(Point("tiles (predicted)", "predicted", layer["layer"], float(layer["tiles"]), note))
    return tuple(points)


MEMORY: Final = Figure(
    "memory",
    "Memory of one IPU by category",
    "Bytes of snnc's program, summed over all tiles (predicted). An IPU (GC200) has 897 MiB.",
    "network",
    "MiB",
    _memory_points,
    lambda quick: tuple(map(plan_row, QUICK if quick else NETS)),
    log_y=False,
    stacked=True,
)
TILE_MAP: Final = Figure(
    "tile-map",
    "Tile map of one IPU",
    "Three hidden layers of 978 neurons and the readout on the 1,472 tiles of a GC200 (N-MNIST inputs, capacity 5 %, T = 100, batch 48): "
    "a colour for each layer, darker with more memory (predicted). Hover over a tile to see its number, neurons and bytes.",
    "layer",
    "tiles",
    _tile_points,
    lambda _: (MAP_ROW,),
    log_y=False,
    picture=lambda results: str(results.get(MAP_ROW.key, {}).get("svg", "")),
)
