"""Draw the tile maps as a PNG picture: layers, memory, compute and exchange of every tile. Requires Pillow."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from snnc.compiler.tiles.errors import PictureToolError
from snnc.compiler.tiles.exchange.places import FREE, RELAYED
from snnc.report.pictures.graphs import printable
from snnc.report.pictures.palette import EMPTY, RAMP, RELAY, layer_colour, rgb
from snnc.report.pictures.tiles import grid_of
from snnc.report.subject import Subject

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw

Pixels = npt.NDArray[np.uint8]
"""Colours [..., 3]: red, green and blue."""
MAP_WIDTH: Final = 760
"""Approximate width of a map in pixels."""
EDGE, HEAD, BELOW = 28, 96, 58
"""Space in pixels: around the maps, for the title, and for the legend below each map."""
INK, SOFT = "#1c2530", "#5b6776"
"""Colours of titles and of other text."""
MAX_NAMES: Final = 10
"""Maximum number of layers in the legend."""
CHARACTER_WIDTH: Final = 7
"""Approximate width of a character of the smallest font in pixels."""


def draw_png(subject: Subject) -> bytes:
    """Draw four tile maps with legends; raise PictureToolError if Pillow is not installed."""
    try:
        from PIL import Image, ImageDraw, ImageFont
    except ImportError:
        raise PictureToolError('a PNG requires Pillow: pip install "snnc[pictures]". SVG and HTML need no package.') from None
    maps = [(title, legend, _enlarged(_arranged(subject, pixels))) for title, legend, pixels in _maps(subject)]
    height, width = maps[0][2].shape[:2]
    size = (3 * EDGE + 2 * width, HEAD + 2 * (height + BELOW) + EDGE)
    image = Image.new("RGB", size, "#ffffff")
    pen = ImageDraw.Draw(image)
    fonts = {points: ImageFont.load_default(points) for points in (22, 15, 13)}
    plan = subject.plan
    title = f"{plan.name} on {plan.target.name}: T = {plan.steps}, batch {plan.batch} (predicted)"
    pen.text((EDGE, 18), _short(title, 100), INK, fonts[22])
    for number, limit in enumerate(subject.limits[:2]):
        pen.text((EDGE, 50 + 19 * number), _short(limit.sentence, 2 * width // CHARACTER_WIDTH), SOFT, fonts[13])
    for number, (title, legend, pixels) in enumerate(maps):
        left, top = EDGE + (number % 2) * (width + EDGE), HEAD + (number // 2) * (height + BELOW) + 24
        pen.text((left, top - 22), title, INK, fonts[15])
        image.paste(Image.fromarray(pixels), (left, top))
        _legend(pen, fonts[13], legend, left, top + height + 8, width)
    stream = io.BytesIO()
    image.save(stream, "PNG", optimize=True)
    return stream.getvalue()


def _maps(subject: Subject) -> list[tuple[str, list[tuple[str, str]], Pixels]]:
    """Return title, legend and colours [tiles, 3] of each map."""
    plan = subject.plan
    names = [(layer_colour(n), p.label) for n, p in enumerate(plan.populations[:MAX_NAMES])]
    maps = [("layers", [(RELAY, "relays"), (EMPTY, "free"), *names], _layers(subject))]
    numbers: list[tuple[str, Any, float, str]] = [("memory", plan.tile_memory, plan.target.tile_bytes, "bytes, the limit")]
    for kind in ("compute", "exchange"):
        values = plan.tile_cycles.get(kind, (0,) * plan.target.tiles)
        numbers.append((kind, values, max(values) or 1, "cycles per step"))
    for kind, values, top, unit in numbers:
        legend = [(EMPTY, "0"), (RAMP[0], "little"), (RAMP[len(RAMP) // 2], f"{top / 2:,.0f}"), (RAMP[-1], f"{top:,.0f} {unit}")]
        maps.append((f"{kind} (predicted)", legend, ramped(np.asarray(values), top)))
    return maps


def _layers(subject: Subject) -> Pixels:
    owner = subject.places.owner
    colours = np.array([rgb(layer_colour(n)) for n in range(max(1, len(subject.plan.populations)))], dtype=np.uint8)
    pixels: Pixels = colours[np.maximum(owner, 0)]
    pixels[owner == FREE] = rgb(EMPTY)
    pixels[owner == RELAYED] = rgb(RELAY)
    return pixels


def ramped(values: npt.NDArray[Any], top: float) -> Pixels:
    """Map values between 0 and `top` to the colour ramp; 0 has the colour of an empty tile."""
    steps = np.array([rgb(colour) for colour in RAMP], dtype=np.float64)
    at = np.clip(values / top, 0, 1) * (len(steps) - 1)
    low = np.minimum(at.astype(int), len(steps) - 2)
    mixed = steps[low] + (steps[low + 1] - steps[low]) * (at - low)[:, None]
    pixels: Pixels = np.where((values == 0)[:, None], np.array(rgb(EMPTY)), mixed.round()).astype(np.uint8)
    return pixels


def _arranged(subject: Subject, pixels: Pixels) -> Pixels:
    """Arrange the tiles' pixels as in the report's SVG map, with white between chips."""
    target, grid = subject.plan.target, grid_of(subject.plan.target)
    height, width = grid.chips_down * (grid.rows + 2) - 2, grid.chips_across * (grid.columns + 2) - 2
    arranged = np.full((height, width, 3), 255, dtype=np.uint8)
    tiles = np.arange(target.tiles)
    chip, at = tiles // target.tiles_per_chip, tiles % target.tiles_per_chip
    rows = (chip // grid.chips_across) * (grid.rows + 2) + at // grid.columns
    columns = (chip % grid.chips_across) * (grid.columns + 2) + at % grid.columns
    arranged[rows, columns] = pixels
    return arranged


def _enlarged(pixels: Pixels) -> Pixels:
    side = max(2, MAP_WIDTH // pixels.shape[1])
    enlarged = np.repeat(np.repeat(pixels, side, axis=0), side, axis=1)
    if side >= 5:
        enlarged[side - 1 :: side] = enlarged[:, side - 1 :: side] = 255
    return enlarged


def _legend(pen: ImageDraw, font: Any, entries: list[tuple[str, str]], left: float, top: float, width: float) -> None:
    x = left
    for colour, text in entries:
        short = _short(text, 26)
        length = 18 + pen.textlength(short, font) + 14
        if x + length > left + width:
            break
        pen.rectangle((x, top + 3, x + 10, top + 13), fill=colour)
        pen.text((x + 16, top), short, SOFT, font)
        x += length


def _short(text: str, length: int) -> str:
    plain = "".join(c if ord(c) < 0x250 else "?" for c in printable(text).translate({0x201C: '"', 0x201D: '"', 0x2026: "."}))
    return plain if len(plain) <= length else plain[: length - 3] + "..."
