"""Colours for colour-blind readers (Okabe & Ito 2008), and a colour ramp (viridis, Smith & van der Walt 2015)."""

from __future__ import annotations

from typing import Final

LAYERS: Final = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8C6BB1", "#B8A800")
"""Colours of layers; the last two are not from Okabe and Ito."""
RELAY: Final = "#8a94a3"
"""Colour of tiles that are relays, and of inputs."""
EMPTY: Final = "#eceff3"
"""Colour of tiles without data."""
RAMP: Final = ("#440154", "#46327e", "#365c8d", "#277f8e", "#1fa187", "#4ac16d", "#a0da39", "#fde725")
"""Colours from small to large values."""
CYCLE_COLOURS: Final = {"compute": "#0072B2", "sync": "#9aa5b1", "exchange": "#E69F00"}
"""Colours of the cycles of a superstep: tiles compute, wait for each other (``sync``), or exchange data."""
MEMORY: Final = {
    "weights": "#0072B2",
    "optimiser": "#56B4E9",
    "gradients": "#CC79A7",
    "history": "#009E73",
    "relays": "#E69F00",
    "records": "#B8A800",
    "exchange": "#D55E00",
    "code": "#7f8c9a",
}
"""Colours of the categories of a tile's memory."""


def layer_colour(index: int) -> str:
    """Return the colour of the layer with this index; colours repeat after eight."""
    return LAYERS[index % len(LAYERS)]


def rgb(colour: str) -> tuple[int, int, int]:
    """Return red, green and blue of ``#rrggbb``."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def ink_on(colour: str) -> str:
    """Return the text colour on the background `colour`: dark if its luminance (WCAG 2.1, but not linearised) exceeds 0.5, else white."""
    red, green, blue = (c / 255 for c in rgb(colour))
    return "#1c2530" if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.5 else "#ffffff"


def mixed(colour: str, strength: float) -> str:
    """Return a mixture of `colour` and white; `strength` 1 is `colour`, 0 is white."""
    return "#" + "".join(f"{round(255 - (255 - c) * strength):02x}" for c in rgb(colour))
