"""Curves of accuracy over epochs as SVG."""

from __future__ import annotations

import numpy as np

COLOURS = ("#222222", "#1b6ca8", "#2a9d5c", "#d07a1c", "#b3263b", "#8a5fb0")


def drawn(curves: dict[str, np.ndarray]) -> str:
    """Return the curves [seeds, epochs] as SVG: the mean of each, and the range of its seeds."""
    epochs = next(iter(curves.values())).shape[1]
    left, top, wide, high = 52, 14, 420, 230

    def place(epoch: float, accuracy: float) -> str:
        return f"{left + wide * epoch / max(1, epochs - 1):.1f},{top + high * (1 - accuracy):.1f}"

    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 {top + high + 44}" font-family="sans-serif" font-size="12">']
    for tick in (0, 0.25, 0.5, 0.75, 1):
        y = top + high * (1 - tick)
        lines.append(f'<path d="M{left} {y:.1f}h{wide}" stroke="#dddddd"/>')
        lines.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{100 * tick:.0f} %</text>')
    for number, (name, found) in enumerate(curves.items()):
        colour = COLOURS[number]
        ends = [place(e, found[:, e].max()) for e in range(epochs)] + [place(e, found[:, e].min()) for e in reversed(range(epochs))]
        lines.append(f'<polygon points="{" ".join(ends)}" fill="{colour}" opacity="0.15"/>')
        means = " ".join(place(e, found[:, e].mean()) for e in range(epochs))
        lines.append(f'<polyline points="{means}" fill="none" stroke="{colour}" stroke-width="2"/>')
        lines.append(f'<text x="{left + wide + 14}" y="{top + 16 + 20 * number}" fill="{colour}">{name}</text>')
    lines.append(f'<text x="{left + wide / 2}" y="{top + high + 34}" text-anchor="middle">epoch</text>')
    for epoch in range(epochs):
        x = left + wide * epoch / max(1, epochs - 1)
        lines.append(f'<text x="{x:.1f}" y="{top + high + 18}" text-anchor="middle">{epoch + 1}</text>')
    return "\n".join([*lines, "</svg>", ""])
