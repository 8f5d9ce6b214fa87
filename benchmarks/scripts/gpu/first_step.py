"""Seconds from ``snnc.compile`` to the end of the first training step: ``python first_step.py OUT.json``.

Each run is a separate process, and all share one cache: a small network fills the empty cache with the kernels that all networks share,
then W1 and the digits' network run with these kernels in the cache, and once more with everything in the cache. ``imports_s`` is the time
of ``import snnc``, which is not part of the others.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

DIGITS: Final = Path(__file__).resolve().parents[3] / "examples" / "digits" / "digits.onnx"
NETS: Final = ("warm", "w1", "digits")
"""``warm`` is W1 with smaller layers; it compiles the kernels that do not depend on the network."""


def timed(net: str) -> dict[str, float]:
    """Compile a network and run one training step; return the seconds of each part.

    ``first_step_s`` is the time of compilation and step together.
    """
    begin = time.perf_counter()
    import numpy as np

    import snnc

    imported = time.perf_counter()
    rng, options = np.random.default_rng(0), {"loss": "ce_mean_membrane", "optimizer": "adam"}
    if net == "digits":
        session = snnc.compile(DIGITS, target="cuda", steps=25, batch=64, **options)
    else:
        inputs, hidden = (700, 256) if net == "w1" else (70, 40)
        network = snnc.Network(net)
        x, spikes = network.input(inputs), network.population(hidden, snnc.LIF(0.9, reset="zero"), name="hidden")
        readout = network.population(20, snnc.LI(0.9), name="readout")
        for before, after, delay in ((x, spikes, 0), (spikes, spikes, 1), (spikes, readout, 0)):
            network.connect(before, after, snnc.Dense(), delay=delay)
        session = snnc.compile(network, target="cuda", steps=100, batch=64, surrogate="fast_sigmoid:25", **options)
    built = time.perf_counter()
    info = session.program.inputs[0]
    batch = (rng.random((25 if net == "digits" else 100, 64, *info.shape)) < 0.05).astype(np.float32)
    session.engine.train_batch({info.id: batch}, rng.integers(0, 10, 64), 1e-3)
    end = time.perf_counter()
    return {"imports_s": imported - begin, "compile_s": built - imported, "step_s": end - built, "first_step_s": end - imported}


def run_in_process(net: str, cache: Path) -> dict[str, Any]:
    """Run :func:`timed` in a separate process with the cache folder `cache`; return only ``failed`` if it fails."""
    done = subprocess.run(
        [sys.executable, __file__, "--net", net], env={**os.environ, "SNNC_CACHE": str(cache)}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        return {"failed": (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]}
    seconds: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return seconds


def main() -> int:
    if sys.argv[1] == "--net":
        print(json.dumps(timed(sys.argv[2])))
        return 0
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for net in (*NETS, *NETS[1:]):
            state = "empty" if not rows else "shared kernels" if len(rows) < len(NETS) else "everything"
            rows.append({"net": net, "cached": state, "processors": os.cpu_count()} | run_in_process(net, Path(folder)))
            Path(sys.argv[1]).write_text(json.dumps({"rows": rows}, indent=1))
            print(rows[-1], flush=True)
    return int(any("failed" in row for row in rows))


if __name__ == "__main__":
    sys.exit(main())
