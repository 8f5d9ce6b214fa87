"""Plan a recurrent network for a Pod-4, and train a smaller one on an emulated machine of four small chips, with a report.

    python examples/four_ipus/four_ipus.py [folder]
"""

import sys
from pathlib import Path

import numpy as np

import snnc
from snnc.report import Subject, write

HERE = Path(__file__).parent
STEPS, BATCH = 20, 16


def network(inputs, *widths):
    """Return a network of recurrent layers and a readout of ten classes."""
    layers = [part for width in widths for part in (snnc.Dense(width), snnc.Recurrent(snnc.LIF(beta=0.9)))]
    return snnc.Sequential(inputs, *layers, snnc.Dense(10), snnc.LI(beta=0.9), name="four")


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    large = snnc.estimate(network(700, 1024, 1024, 1024), "pod4", steps=100, batch=64, loss="ce_mean_membrane", optimizer="adam")
    data = large.to_data()
    print(f"3 x 1,024 neurons on a Pod-4 (predicted): {data['step_ms']:.2f} ms a training step on {data['ipus']} IPUs")
    (folder / "picture.png").write_bytes(write(Subject(large.plan, {}), "png"))

    random = np.random.default_rng(0)
    x, y = (random.random((64, STEPS, 100)) < 0.1).astype(np.uint8), random.integers(0, 10, 64)
    options = {"steps": STEPS, "batch": BATCH, "loss": "ce_mean_membrane", "optimizer": "adam:0.01", "input_kind": "spikes", "calibrate": x}
    machine = HERE / "small_pod.toml"
    with snnc.compile(network(100, 96, 96), target=str(machine), output=folder / "project", overwrite=True, **options) as session:
        history = session.fit(x, y, epochs=3)
        cycles = session.cycles()
        session.report(folder / "report.html")
    predicted, counted = cycles["predicted"], cycles["counted"]
    print(f"2 x 96 neurons on four chips of 24 tiles: {predicted:,.0f} cycles per step (predicted), {counted:,.0f} (emulated)")
    print(f"loss {history.losses[0]:.3f} -> {history.losses[-1]:.3f}; the report is {folder / 'report.html'}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/four_ipus"))
