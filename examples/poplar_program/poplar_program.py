"""Run a hand-written Poplar program on the emulator and compare it with NumPy: waves on a ring of spiking neurons.

    python examples/poplar_program/poplar_program.py [folder]
"""

import json
import subprocess
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

HERE = Path(__file__).parent
STEPS, NEURONS = 160, 160


def on_the_emulator(folder):
    """Build and run the program; return its spikes [steps, neurons] and the emulator's profile."""
    command = ["emulate", HERE / "host.cpp", HERE / "codelets.cpp", "--check-bounds", "--profile", folder / "profile.json", "--"]
    subprocess.run([sys.executable, "-m", "snnc", *map(str, command), str(folder / "spikes.bin")], check=True)
    spikes = np.fromfile(folder / "spikes.bin", np.float32).reshape(STEPS, NEURONS)
    return spikes, json.loads((folder / "profile.json").read_text())


def in_numpy():
    """Return the spikes of the same ring [steps, neurons], computed in NumPy."""
    drive = np.full((STEPS, NEURONS), 0.05, np.float32)
    drive[40, 40] = drive[70, 110] = 2
    membrane, before, out = np.zeros(NEURONS, np.float32), np.zeros(NEURONS, np.float32), []
    for step in range(STEPS):
        membrane = np.float32(0.9) * membrane + drive[step] + np.float32(0.55) * (np.roll(before, 1) + np.roll(before, -1))
        before = (membrane > 1).astype(np.float32)
        membrane[before > 0] = -1
        out.append(before)
    return np.stack(out)


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    spikes, profile = on_the_emulator(folder)
    assert (spikes == in_numpy()).all()
    cycles = profile["cycles_last_run"]
    print(f"{int(spikes.sum())} spikes, the same as in NumPy; {cycles:,.0f} cycles (counted by the emulator)")
    figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
    axes.imshow(1 - spikes.T, cmap="gray", aspect="auto", interpolation="nearest")
    axes.set(xlabel="time step", ylabel="neuron on the ring", title="Waves that start at two neurons and end where they meet")
    figure.savefig(folder / "picture.png", dpi=90)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/poplar_program"))
