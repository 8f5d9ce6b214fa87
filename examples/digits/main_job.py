"""Compile a network that was trained in snnTorch for one IPU, run it, and train it further.

Every step is an snnc command, which is printed before it runs. Without an IPU, the program runs on the emulator.

    python examples/digits/main_job.py [--target gc200] [--folder build/digits]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent


def snnc(*arguments: object) -> None:
    """Print and run one snnc command; exit if it fails."""
    words = [str(a) for a in arguments]
    print(f"\n$ snnc {' '.join(words)}", flush=True)
    done = subprocess.run([sys.executable, "-c", "from snnc.cli.main import main; main()", *words], check=False)
    if done.returncode:
        raise SystemExit(done.returncode)


def judge(fired: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    """Return the accuracy and the cross entropy of spikes [T, samples, 10], whose counts are the scores of the classes."""
    counts = fired.sum(axis=0).astype(np.float64)
    log_probabilities = counts - np.log(np.exp(counts).sum(axis=1, keepdims=True))
    return float((counts.argmax(axis=1) == labels).mean()), float(-log_probabilities[np.arange(len(labels)), labels].mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", default="gc200")
    parser.add_argument("--folder", type=Path, default=Path("build/digits"))
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=5, help="number of epochs; after a single one, the loss may be higher than before")
    chosen = parser.parse_args()
    start = time.monotonic()
    folder, work = chosen.folder, chosen.folder.parent
    work.mkdir(parents=True, exist_ok=True)
    data = np.load(HERE / "digits.npz")
    facts = json.loads((HERE / "digits.json").read_text())
    inputs, outputs = work / "test_spikes.npz", work / "test_fired.npz"
    np.savez_compressed(inputs, spikes=data["test_x"].swapaxes(0, 1))

    training = ("--loss", "ce_count", "--optimizer", "adam", "--lr", 0.002, "--surrogate", "fast_sigmoid:25")
    data_options = ("--input-kind", "spikes", "--data", HERE / "digits.npz")
    snnc("compile", HERE / "digits.onnx", "--target", chosen.target, "--batch", chosen.batch, *training, *data_options, "-o", folder)
    results = []
    for moment in ("as compiled", "after training"):
        snnc("run", folder, "--inputs", inputs, "--outputs", outputs)
        results.append(judge(np.load(outputs)["fired"], data["test_y"]))
        print(f"test accuracy {moment}: {results[-1][0]:.4f} (snnTorch itself: {facts['test_accuracy']:.4f})", flush=True)
        if moment == "as compiled":
            snnc("train", folder, "--data", HERE / "digits.npz", "--epochs", chosen.epochs, "--record", 2)
    snnc("inspect", folder, "--format", "text")
    snnc("inspect", folder, "--format", "html", "-o", work / "report.html")
    snnc("inspect", folder, "--format", "svg", "-o", work / "picture.svg")

    (before, loss_before), (after, loss_after) = results
    print(f"""
digits on {chosen.target}, {len(data["test_y"])} test samples, {facts["steps"]} steps
  snnTorch on this network       accuracy {facts["test_accuracy"]:.4f}
  snnc, the compiled program     accuracy {before:.4f}   loss {loss_before:.4f}
  snnc, after {chosen.epochs} more epochs     accuracy {after:.4f}   loss {loss_after:.4f}
  report with the tile map: {work / "report.html"}
  {time.monotonic() - start:.0f} s in all""")
    if abs(before - facts["test_accuracy"]) > 0.005:
        raise SystemExit("the compiled program does not agree with snnTorch")
    if loss_after >= loss_before:
        raise SystemExit("training did not lower the loss")


if __name__ == "__main__":
    main()
