"""All checks and measurements that need a GPU, the most important first: ``python benchmarks/scripts/gpu/session.py OUT [options]``.

Each part is a process with a time limit. OUT receives ``log.txt``, ``session.json`` (outcome and seconds of each part, rewritten after
each), a file of rows for each measurement, rewritten after each row, and ``measured.toml``, the measured training steps in the form of
``benchmarks/reproduce/measured_gpu.toml``. Parts for which less than 15 s of ``--minutes`` remain are left out and named; ``--only`` runs
them later. ``--check`` tries the whole script without a GPU: the CPU replaces it, on few and small networks.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parents[2]
LOG: Final = "log.txt"
SHORTEST_S: Final = 15.0
"""Minimum remaining time for which a part is started, in seconds."""
NETS: Final = "w1-5,w2-5,w1-b1024-5,conv-3,w3-5,w1-ff-5,open-4096-5,open-4096-1,open-4096-20"
FASTEST_OTHERS: Final = "spikingjelly,torch,jax"
"""Frameworks that were the fastest on some network (docs/explanation/gpu-bounds.md)."""
NAMES: Final = {"spikingjelly": "SpikingJelly", "jax": "JAX", "norse": "Norse", "snntorch": "snnTorch", "spyx": "Spyx"}
"""Names of frameworks in figures; others are spelled as in the rows."""


@dataclass(frozen=True)
class Part:
    name: str
    """Name of the part, for ``--only``."""
    command: tuple[str, ...]
    seconds: float
    """Time limit, in seconds."""
    rows: str = ""
    """Name of the file of rows that the part writes; "" for none."""
    expected: str = ""
    """Text that the output must contain, so that a part whose tests are skipped does not count as passed."""


def parts(out: Path, check: bool) -> tuple[Part, ...]:
    """Return the parts in order; with `check`, benchmarks have a single small network."""
    python = (sys.executable,)

    def suite(name: str, nets: str, engines: str, seconds: float, *more: str) -> Part:
        rows = f"{name}.json"
        few = "snnc:bfloat16,torch:bfloat16" if more else "snnc:exact,torch"  # `more` names precisions
        chosen = ("w1-5", few) if check else (nets, engines)
        command = ("-m", "snnc", "bench", "--suite", "cuda", "--nets", chosen[0], "--json", str(out / rows), "--resume")
        rounds = "1" if check else "3"
        settings = ("--engines", chosen[1], "--rounds", rounds, "--first-step", "30", *more)
        return Part(name, (*python, *command, *settings), seconds, rows)

    device = "tests/backends/cuda/test_cuda_device.py"
    pytest = (*python, "-m", "pytest", device, "-q", "-p", "no:cacheprovider")
    short = f"snnc:tf32,snnc:bfloat16,snnc:float16,{FASTEST_OTHERS}"
    passed = "" if check else " passed"
    together = () if check else ("-n", "4")
    sanitize = ("compute-sanitizer", "--error-exitcode", "9")
    which = ("-x", "-k", "reference and recurrent")
    return (
        Part("machine", ("sh", "-c", "nvidia-smi; nvcc --version; ncu --version; git rev-parse HEAD; python3 -m pip list"), 30),
        Part("tests", (*pytest, *together), 150, expected=passed),
        suite("rows", NETS, f"snnc:exact,{FASTEST_OTHERS}", 240),
        suite("activity", "h3-*", "snnc:exact,spikingjelly,torch", 120),
        Part("first-step", (*python, str(HERE / "first_step.py"), str(out / "first-step.json")), 100, "first-step.json"),
        *(Part(tool, (*sanitize, "--tool", tool, *pytest, *which), 90, expected=passed) for tool in ("memcheck", "racecheck", "synccheck")),
        suite("precision", "w1-5,w2-5,conv-3", short, 180, "--precision", "tf32,bfloat16,float16"),
        suite("batches", "w1-b256-5,w2-b256-5,w2-b1024-5", f"snnc:exact,{FASTEST_OTHERS}", 150),
    )


def run_part(part: Part, seconds: float, out: Path, environment: dict[str, str]) -> dict[str, Any]:
    """Run a part for at most `seconds`, with its output in the log; return its outcome."""
    begin = time.monotonic()
    with (out / LOG).open("ab") as log:
        log.write(f"\n==== {part.name}: {' '.join(part.command)}\n".encode())
        log.flush()
        start = log.tell()
        if shutil.which(part.command[0]) is None:
            return {"part": part.name, "outcome": f"not run: {part.command[0]} is not installed", "seconds": 0.0}
        process = subprocess.Popen(
            part.command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
        try:
            code = process.wait(seconds)
            outcome = "ok" if code == 0 else f"exit code {code}"
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            outcome = f"stopped after {seconds:.0f} s"
    if outcome == "ok" and part.expected.encode() not in (out / LOG).read_bytes()[start:]:
        outcome = f"its output has no{part.expected}: see {LOG}"
    result = {"part": part.name, "outcome": outcome, "seconds": round(time.monotonic() - begin, 1), "last": _last_line(out / LOG)}
    return result | ({"rows": len(rows_of(out / part.rows))} if part.rows else {})


def rows_of(path: Path) -> list[dict[str, Any]]:
    try:
        return list(json.loads(path.read_text())["rows"])
    except (OSError, ValueError, KeyError):
        return []


def measured_toml(rows: Sequence[dict[str, Any]], device: str, date: str, commit: str) -> str:
    """Return the measured rows of mode exact as a run of ``measured_gpu.toml``: median times, and weights, data, activity by network."""
    exact = [row for row in rows if row.get("times") == "measured" and row["mode"] == "exact"]
    lines = ["[[run]]", 'processor = "GPU"', f'device = "{device}"', f'date = "{date}"', f'commit = "{commit}"', "step = ["]
    labels = [f"{row['workload'].lower()}-{100 * row['density']:g}" for row in exact]
    for row, label in zip(exact, labels, strict=True):
        joules = f", joules = {row['joules']:.3g}" if row.get("joules") is not None else ""
        program = NAMES.get(row["engine"], row["engine"])
        lines.append(f'    {{ net = "{label}", program = "{program}", ms = {row["ms_median"]:.4g}{joules} }},')
    lines.append("]")
    for label, row in dict(zip(labels, exact, strict=True)).items():
        about = row["conditions"]
        rates = ", ".join(f"{name} = {rate:.6g}" for name, rate in about["activity"].items())
        lines += ["", f'[problem."{label}"]', f'weights = "{about["weights"]}"', f'data = "{about["data"]}"', f"activity = {{ {rates} }}"]
    return "\n".join(lines) + "\n"


def _last_line(path: Path) -> str:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 2000))
        lines = file.read().decode(errors="replace").strip().splitlines()
    return lines[-1][:300] if lines else ""


def _commit() -> str:
    done = subprocess.run(("git", "rev-parse", "--short", "HEAD"), cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _write(out: Path, outcomes: Sequence[dict[str, Any]], commit: str) -> None:
    date = datetime.now(UTC).date().isoformat()
    (out / "session.json").write_text(json.dumps({"date": date, "commit": commit, "parts": list(outcomes)}, indent=1))
    rows, device = [], ""
    for file in sorted(out.glob("*.json")):
        some = [row for row in rows_of(file) if row.get("times") == "measured"]
        rows += some
        device = json.loads(file.read_text())["machine"]["GPU"] if some else device
    if rows:
        (out / "measured.toml").write_text(measured_toml(rows, device, date, commit))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, help="folder for the results, created if missing")
    parser.add_argument("--minutes", type=float, default=9.0, help="time for all parts (default 9)")
    parser.add_argument("--only", default="", help="only these parts, separated by commas")
    parser.add_argument("--commit", default="", help="commit of the sources, where git is missing")
    parser.add_argument("--check", action="store_true", help="try the script without a GPU, on the CPU")
    arguments = parser.parse_args()
    out: Path = arguments.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    chosen, names = parts(out, arguments.check), [name for name in arguments.only.split(",") if name]
    if unknown := set(names) - {part.name for part in chosen}:
        parser.error(f"unknown part {', '.join(sorted(unknown))}; the parts are {', '.join(part.name for part in chosen)}")
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"} | ({"SNNC_CUDA_ON_HOST": "1"} if arguments.check else {})
    end, commit = time.monotonic() + 60 * arguments.minutes, arguments.commit or _commit()
    outcomes: list[dict[str, Any]] = []
    for part in chosen:
        if names and part.name not in names:
            continue
        left = end - time.monotonic()
        if left < SHORTEST_S:
            outcomes.append({"part": part.name, "outcome": "left out: no time left", "seconds": 0.0})
        else:
            outcomes.append(run_part(part, min(part.seconds, left), out, environment))
        print(json.dumps(outcomes[-1]), flush=True)
        _write(out, outcomes, commit)
    return int(any(one["outcome"] != "ok" for one in outcomes))


if __name__ == "__main__":
    sys.exit(main())
