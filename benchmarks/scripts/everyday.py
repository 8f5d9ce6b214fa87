"""Time of everyday commands on this machine: ``python benchmarks/scripts/everyday.py``."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

DIGITS = Path(__file__).parents[1] / "examples" / "digits"


def timed(*arguments: object) -> float:
    """Run one command and return its seconds."""
    start = time.perf_counter()
    command = [sys.executable, "-c", "from snnc.cli.main import main; main()", *map(str, arguments)]
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - start


def main() -> None:
    data = np.load(DIGITS / "digits.npz")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.savez(folder / "x.npz", spikes=data["test_x"].swapaxes(0, 1))
        files = ("--inputs", folder / "x.npz", "--outputs", folder / "y.npz")
        training = ("--loss", "ce_count", "--optimizer", "adam", "--input-kind", "spikes", "--data", DIGITS / "digits.npz")
        rows = {
            "snnc --help": ("--help",),
            "snnc check": ("check", DIGITS / "digits.onnx"),
            "snnc run, reference": ("run", DIGITS / "digits.onnx", *files),
            "snnc compile": ("compile", DIGITS / "digits.onnx", *training, "-o", folder / "p"),
            "snnc run, emulator, first": ("run", folder / "p", *files),
            "snnc run, emulator, again": ("run", folder / "p", *files),
            "snnc train, one epoch": ("train", folder / "p", "--data", DIGITS / "digits.npz"),
            "snnc inspect": ("inspect", folder / "p", "-o", folder / "report.html"),
        }
        for label, arguments in rows.items():
            print(f"{label:28} {timed(*arguments):6.2f} s", flush=True)


if __name__ == "__main__":
    main()
