"""Read NIR files of three frameworks, each in its dialect, and compare the spikes with those that the framework computed.

    python examples/nir_frameworks/nir_frameworks.py [folder]
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import snnc
from snnc.frontends.nir import load_nir, write_nir

HERE = Path(__file__).parent
DIALECTS = ("snntorch", "norse", "spikingjelly")


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    answers = np.load(HERE / "answers.npz")
    x, spikes = answers["x"].astype(np.float32), {}
    for dialect in DIALECTS:
        graph = load_nir(HERE / f"{dialect}.nir", dialect=dialect)
        with snnc.compile(graph) as session:
            (spikes[dialect],) = session.run(x).values()
        differ = int((spikes[dialect] != answers[dialect]).sum())
        print(f"{dialect}.nir: {int(spikes[dialect].sum())} spikes, {differ} differ from {dialect}'s own")
        assert differ == 0
    with snnc.compile(load_nir(HERE / "norse.nir", dialect="snntorch")) as session:
        (misread,) = session.run(x).values()
    differ = int((misread != answers["norse"]).sum())
    print(f"norse.nir read as snnTorch's: {differ} spikes differ, so name the framework that wrote a file")
    for sentence in write_nir(load_nir(HERE / "norse.nir", dialect="norse"), folder / "again.nir", dt=1e-6):
        print(f"again.nir, written by snnc: {sentence}")
    draw(folder / "picture.png", x, spikes, misread)


def draw(path, x, spikes_by_dialect, misread):
    """Draw the spikes of the first sample, with a panel for the input, each dialect and the misread file."""
    panels = {"input": x, **spikes_by_dialect, "norse.nir read\nas snnTorch's": misread}
    figure, axes = plt.subplots(1, len(panels), figsize=(10, 2.2), layout="constrained")
    for axis, (title, spikes) in zip(axes, panels.items(), strict=True):
        axis.eventplot([np.flatnonzero(spikes[:, 0, n]) for n in range(spikes.shape[2])], linelengths=0.8, color="black")
        axis.set(xlabel="time step", yticks=[], xlim=(-1, len(x)))
        axis.set_title(title, fontsize=9)
    figure.savefig(path, dpi=90)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/nir_frameworks"))
