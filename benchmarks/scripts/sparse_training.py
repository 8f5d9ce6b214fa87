"""Training with few spikes and a moving second threshold: ``python benchmarks/scripts/sparse_training.py --plot curves.svg``.

The regime of Finkbeiner et al. 2023: four layers of weights, a capacity of 1, 5 or 10 % of each layer, and a second threshold that begins
100 below the threshold and goes half-way to 0.1 below it with each update; beside it a dense training, and one with the narrow window from
the first update. The data are made here: strokes of ten kinds that a pen draws, as events of 34 x 34 pixels of two polarities, as N-MNIST
has them. Trains on the processor; prints the test accuracy after each epoch, mean and range over seeds, as a Markdown table.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import snnc
from snnc.compiler.lowering.spike_limits import limited_sources

SIDE, STEPS, BATCH = 34, 20, 48
WIDTHS = (512, 256, 128)
NARROW = -0.1
PUBLISHED = snnc.schedules.Exponential(-100, NARROW)
TRAININGS = {
    "dense": (None, None),
    "10 %": (0.10, PUBLISHED),
    "5 %": (0.05, PUBLISHED),
    "1 %": (0.01, PUBLISHED),
    f"10 %, {NARROW} from the start": (0.10, NARROW),
}
COLOURS = ("#222222", "#1b6ca8", "#2a9d5c", "#d07a1c", "#b3263b")
KEPT = -100.0


def strokes(samples: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Spikes [samples, T, 2312] and kinds: a pen moves along four corners, which a kind has, with jitter; what lies behind it turns off."""
    corners = np.random.default_rng(0).uniform(5, SIDE - 6, (10, 4, 2))
    random = np.random.default_rng(seed)
    kinds = random.integers(0, 10, samples)
    events = np.zeros((samples, STEPS, 2, SIDE, SIDE), np.float32)
    at = np.linspace(0, 3, STEPS * 6)
    for sample, kind in enumerate(kinds):
        own = (corners[kind] + random.normal(0, 1.5, (4, 2))) + random.normal(0, 2.0, 2)
        path = np.stack([np.interp(at, range(4), own[:, axis]) for axis in (0, 1)], axis=1)
        for polarity, late in ((0, 0), (1, 9)):
            drawn = path[: len(path) - late] + random.normal(0, 0.7, (len(path) - late, 2))
            rows, columns = np.clip(np.rint(drawn), 0, SIDE - 1).astype(int).T
            events[sample, (np.arange(len(drawn)) + late) // 6, polarity, rows, columns] = 1
        noise = random.random((STEPS, 2, SIDE, SIDE)) < 0.001
        events[sample][noise] = 1
    return events.reshape(samples, STEPS, -1), kinds


def network(seed: int) -> snnc.Sequential:
    """Four layers of weights."""
    parts: list[object] = [2 * SIDE * SIDE]
    for width in WIDTHS:
        parts += [snnc.Dense(width), snnc.LIF(0.95)]
    return snnc.Sequential(*parts, snnc.Dense(10), snnc.LI(0.95), seed=seed)


def train(share: float | None, window: object, seed: int, data: tuple[np.ndarray, ...], epochs: int) -> tuple[list[float], int]:
    """Return the test accuracy after each epoch, and the number of dropped spikes."""
    x, y, test_x, test_y = data
    limits = {} if share is None else {"mode": "drop", "capacity": 2 * SIDE * SIDE, "gradient_window": KEPT}
    chosen = {"loss": "mean membrane", "optimizer": snnc.Adam(1e-3), "surrogate": "superspike", "steps": STEPS, **limits}
    found = []
    with snnc.compile(network(seed), "cpu", **chosen) as session:
        for buffer, limit in limited_sources(session.program).items():
            if not buffer.startswith("x"):
                kept = max(1, round((share or 1) * session.program.buffers[buffer].shape[0]))
                session.engine.set_parameters({limit.capacity: np.float32(kept)})
        session.fit(
            x,
            y,
            epochs=epochs,
            batch=BATCH,
            seed=seed,
            gradient_window=window,
            on_epoch=lambda _: found.append(session.evaluate(test_x, test_y)),
        )
        return found, session.counters()["dropped_spikes"]


def drawn(curves: dict[str, np.ndarray]) -> str:
    """Return the curves [seeds, epochs] as SVG: the mean of each, and the range of its seeds."""
    epochs = next(iter(curves.values())).shape[1]
    left, top, wide, high = 52, 14, 420, 230

    def place(epoch: float, accuracy: float) -> str:
        return f"{left + wide * epoch / max(1, epochs - 1):.1f},{top + high * (1 - accuracy):.1f}"

    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 {top + high + 44}" font-family="sans-serif" font-size="12">']
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--samples", type=int, default=960)
    parser.add_argument("--plot", type=Path)
    chosen = parser.parse_args()
    data = (*strokes(chosen.samples, 1), *strokes(480, 2))
    print("| training | test accuracy after " + " | ".join(f"epoch {e + 1}" for e in range(chosen.epochs)) + " | dropped spikes of a run |")
    print("|---|" + "---|" * (chosen.epochs + 1))
    curves = {}
    for name, (share, window) in TRAININGS.items():
        runs = [train(share, window, seed, data, chosen.epochs) for seed in range(chosen.seeds)]
        found = curves[name] = np.array([accuracy for accuracy, _ in runs])
        cells = [f"{of.mean():.1f} ({of.min():.1f}-{of.max():.1f})" for of in 100 * found.T]
        print(f"| {name} | {' | '.join(cells)} | {np.mean([dropped for _, dropped in runs]):,.0f} |", flush=True)
    if chosen.plot is not None:
        chosen.plot.write_text(drawn(curves), encoding="utf-8")


if __name__ == "__main__":
    main()
