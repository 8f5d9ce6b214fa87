"""Train a recurrent network on files in the format of the Spiking Heidelberg Digits (SHD) with the recipe shd.toml.

    python examples/spoken_digits/spoken_digits.py [folder]
"""

import csv
import subprocess
import sys
from pathlib import Path

import h5py
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

sys.path.insert(0, str(Path(__file__).parent))
import make


def main(folder):
    make.main(folder)
    command = ["train", str(folder / "build"), "--recipe", str(folder / "shd.toml")]
    print("$ snnc", *command, flush=True)
    subprocess.run([sys.executable, "-m", "snnc", *command], check=True)
    with (folder / "log.csv").open() as file:
        rows = list(csv.DictReader(file))
    print(f"validation accuracy {float(rows[-1]['validation_accuracy']):.3f} after {len(rows)} epochs")
    draw(folder / "picture.png", folder / "shd_train.h5", rows)


def draw(path, data, rows):
    """Draw a sample of each class from the file, and the losses of training and validation."""
    figure, axes = plt.subplots(1, make.CLASSES + 1, figsize=(10, 2.4), width_ratios=[1] * make.CLASSES + [1.4], layout="constrained")
    with h5py.File(data) as file:
        labels = list(file["labels"][:])
        for label, axis in enumerate(axes[:-1]):
            sample = labels.index(label)
            axis.scatter(file["spikes/times"][sample], file["spikes/units"][sample], s=1, color="black")
            axis.set(xlabel="seconds", title=f"class {label}", yticks=[0, make.CHANNELS])
    axes[0].set(ylabel="channel")
    epochs = range(1, len(rows) + 1)
    axes[-1].plot(epochs, [float(row["loss"]) for row in rows], label="training loss")
    axes[-1].plot(epochs, [float(row["validation_loss"]) for row in rows], label="validation loss")
    axes[-1].set(xlabel="epoch", ylim=(0, None))
    axes[-1].legend(fontsize=8)
    figure.savefig(path, dpi=90)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/spoken_digits"))
