"""Time of imports, in seconds of process time on this machine: ``python benchmarks/scripts/imports.py``.

First an unrolled 700-256 (recurrent)-20 network at 100 and 1000 steps, read five times; then every good file of the corpus through
``snnc run``, which starts Python, imports the file and runs it on its stored inputs.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from snnc.frontends.onnx.load import load_onnx

TESTS = Path(__file__).parents[1] / "tests"
CORPUS = TESTS / "corpus"
sys.path.insert(0, str(TESTS / "frontends"))
from test_onnx_rolling import large  # noqa: E402


def import_seconds(path: Path) -> list[float]:
    """Read a file five times."""
    found = []
    for _ in range(5):
        start = time.process_time()
        load_onnx(path)
        found.append(time.process_time() - start)
    return found


def case_seconds(case: dict, folder: Path) -> float:
    """Run one case by the command line; return what the process used."""
    file = next(f for f in case["files"] if f.endswith((".onnx", ".nir")))
    stored = np.load(CORPUS / f"{Path(file).stem}.npz")
    np.savez(folder / "x.npz", **{k.split("_", 1)[1]: stored[k] for k in stored.files if k.startswith(("in_", "init_"))})
    command = [sys.executable, "-c", "from snnc.cli.main import main; main()", "run", str(CORPUS / file)]
    command += ["--inputs", str(folder / "x.npz"), "--outputs", str(folder / "y.npz")]
    command += ["--dt", str(case["dt"])] if case.get("dt") else []
    if file.endswith(".nir") and case["framework"] in ("snntorch", "norse", "spikingjelly", "spyx"):
        command += ["--dialect", case["framework"]]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for steps in (100, 1000):
            spent = import_seconds(large(folder / f"{steps}.onnx", steps))
            print(f"700-256-20, {steps:4} steps   {min(spent):.2f} to {max(spent):.2f} s", flush=True)
        cases = [c for c in json.loads((CORPUS / "manifest.json").read_text())["cases"] if c["expect"] == "import"]
        spent = [case_seconds(c, folder) for c in cases]
        print(f"{len(spent)} cases, snnc run     median {np.median(spent):.2f} s, largest {max(spent):.2f} s")


if __name__ == "__main__":
    main()
