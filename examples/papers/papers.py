"""Train small networks on the CPU by the recipes of two papers on IPUs: sparse training, and population codes.

    python examples/papers/papers.py [folder]
"""

import json
import subprocess
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

sys.path.insert(0, str(Path(__file__).parent))
import make

RECIPES = {"sparse": "sparse_bptt.toml", "codes": "population_codes.toml"}
TITLES = {
    "sparse": "2311.04386: at most 26 of 512 spikes sent,\na second threshold that moves",
    "codes": "2211.10725: one time step,\n50 neurons per class",
}


def main(folder):
    make.main(folder)
    histories = {}
    for project, recipe in RECIPES.items():
        command = ["train", f"{project}/", "--recipe", recipe]
        print("$ snnc", *command, flush=True)
        done = subprocess.run([sys.executable, "-m", "snnc", *command, "--json"], check=True, cwd=folder, stdout=subprocess.PIPE)
        histories[project] = json.loads(done.stdout)
        print(f"validation accuracy {histories[project]['validation']['accuracy'][-1]:.3f}")
    (folder / "found.json").write_text(json.dumps(histories))
    draw(folder / "picture.png", histories)


def draw(path, histories):
    """Draw the validation accuracy over the epochs, with a panel for each paper."""
    figure, panels = plt.subplots(1, len(histories), figsize=(8, 3), sharey=True, layout="constrained")
    for panel, (project, history) in zip(panels, histories.items(), strict=True):
        accuracy = history["validation"]["accuracy"]
        panel.plot(range(1, len(accuracy) + 1), [100 * a for a in accuracy], marker="o")
        panel.set_title(TITLES[project], fontsize=9)
        panel.set(xlabel="epoch", ylim=(0, 100))
    panels[0].set(ylabel="validation accuracy, %")
    figure.savefig(path, dpi=90)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/papers"))
