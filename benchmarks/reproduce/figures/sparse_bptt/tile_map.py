"""Figure: the tile map of one IPU."""

from __future__ import annotations

from typing import Final

from snnc.benchmarks.reproduce.figure import Figure, Point, Results, Row, why_missing

NET: Final = "nmnist-h3-a5"
ROW: Final = Row("tile map", {"name": NET})


def points(results: Results) -> tuple[Point, ...]:
    """Return the number of tiles of each layer; the note has their mean and largest memory."""
    result = results.get(ROW.key)
    if result is None:
        return ()
    if "layers" not in result:
        return (Point("tiles (predicted)", "predicted", NET, None, why_missing(result)),)
    found = []
    for layer in result["layers"]:
        note = (
            f"{layer['neurons']:,} neurons on {layer['tiles']:,} tiles; {layer['mean_bytes'] / 2**10:,.0f} KiB per tile on average, "
            f"{layer['largest_bytes'] / 2**10:,.0f} KiB on the fullest"
        )
        found.append(Point("tiles (predicted)", "predicted", layer["layer"], float(layer["tiles"]), note))
    return tuple(found)


def picture(results: Results) -> str:
    """Return the drawing in the row's result; "" if there is none."""
    return str(results.get(ROW.key, {}).get("svg", ""))


FIGURE: Final = Figure(
    "tile-map",
    "2311.04386",
    "Tile map of one IPU",
    "Three hidden layers of 978 neurons and the readout on the 1,472 tiles of a GC200 (N-MNIST inputs, capacity 5 %, T = 100, batch 48): "
    "a colour for each layer, darker with more memory (predicted). Hover over a tile to see its number, neurons and bytes.",
    "layer",
    "tiles",
    lambda _: (ROW,),
    points,
    log_y=False,
    picture=picture,
)
