"""Training steps on a GPU, snnc beside frameworks on torch: ``python benchmarks/scripts/cuda_steps.py --json rows.json``.

The networks of ``snnc bench --suite cpu`` at larger batches. All engines have the same weights and the same batch in device memory, fp32,
[steps, batch, inputs]; each shows the loss and the gradients of plain torch first (within 1e-3), then they take turns. A step is
timed from one synchronisation of the device to the next, the read of the loss included. Without a GPU, ``--device cpu --small`` runs all
of it in little, snnc's kernels as a check on the processor: such times mean nothing, and are labelled so.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch

from snnc.backends.cuda.emit import emit_cuda
from snnc.backends.cuda.engine import open_engine
from snnc.benchmarks.cpu.network import labels, network, training
from snnc.benchmarks.cpu.problem import TrainingStepProblem, make_problem
from snnc.benchmarks.cpu.workloads import LEARNING_RATE, Workload, workloads
from snnc.driver.loading import as_graph
from snnc.driver.lowering import lower_graph
from snnc.options.compile_options import options

EQUAL = 1e-3
"""Most relative difference of loss and gradients from plain torch."""
UNTIMED, TIMED = 3, 10
PEERS = ("torch", "snntorch", "norse", "spikingjelly")
VARIANTS = ("eager", "compiled")


class Snnc:
    """snnc's program, with the batch where the others have it."""

    def __init__(self, problem: TrainingStepProblem, device: str, folder: Path) -> None:
        workload = problem.workload
        program = lower_graph(as_graph(network(workload)), options("cuda", **training(workload))).program
        self.engine = open_engine(emit_cuda(program, folder, workload.steps, workload.batch))
        names = {p.label: name for name, p in program.parameters.items()}
        self.names = {name: names[label] for name, label in labels(workload).items()}
        self.engine.set_parameters({self.names[name]: value for name, value in problem.weights.items()})
        self.inputs = {program.inputs[0].id: torch.from_numpy(problem.x).to(device) if device == "cuda" else problem.x}
        self.y = problem.y

    def step(self) -> float:
        """Return the loss; the program has ended then."""
        return self.engine.train_batch(self.inputs, self.y, LEARNING_RATE)

    def gradients(self) -> dict[str, Any]:
        """Gradients of the last step."""
        found = self.engine.gradients()
        return {name: found[parameter] for name, parameter in self.names.items()}


class Peer:
    """An engine of the CPU suite, moved to the device."""

    def __init__(self, problem: TrainingStepProblem, device: str, module: str, variant: str) -> None:
        self.engine = import_module(f"snnc.benchmarks.cpu.engines.with_{module}").Engine(problem, "exact", variant)
        self.engine.x, self.engine.y = self.engine.x.to(device), self.engine.y.to(device)
        self.engine.parameters = {n: torch.nn.Parameter(p.detach().to(device)) for n, p in self.engine.parameters.items()}
        self.engine._optimizer = torch.optim.Adam(self.engine.parameters.values(), lr=LEARNING_RATE, fused=True)

    def step(self) -> float:
        """Return the loss."""
        return float(self.engine.step())

    def gradients(self) -> dict[str, Any]:
        """Gradients of the last step."""
        return {n: p.grad.cpu().numpy() for n, p in self.engine.parameters.items() if p.grad is not None}


def timed(engine: Snnc | Peer, synchronise: Callable[[], None]) -> list[float]:
    """Milliseconds of some steps."""
    for _ in range(UNTIMED):
        engine.step()
    found = []
    for _ in range(TIMED):
        synchronise()
        start = time.perf_counter()
        engine.step()
        synchronise()
        found.append(1e3 * (time.perf_counter() - start))
    return found


def differs(engine: Snnc | Peer, loss: float, gradients: dict[str, Any]) -> str:
    """Why the first step is not that of plain torch; "" where it is."""
    found = engine.step()
    if not abs(found - loss) <= EQUAL * abs(loss):
        return f"its loss is {found:.6g}, not {loss:.6g}"
    for name, own in engine.gradients().items():
        error = float(np.linalg.norm(own - gradients[name]) / max(np.linalg.norm(gradients[name]), 1e-12))
        if not error <= EQUAL:
            return f"the gradient of {name} differs by {error:.2g}"
    return ""


def measure(workload: Workload, peers: list[str], rounds: int, device: str) -> list[dict[str, Any]]:
    """Rows of all engines on one workload."""
    problem = make_problem(workload)
    synchronise = torch.cuda.synchronize if device == "cuda" else (lambda: None)
    plain = Peer(problem, device, "torch", "eager")
    loss, gradients = plain.step(), plain.gradients()
    running: dict[tuple[str, str], Snnc | Peer] = {}
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="snnc-bench-") as above:
        makers: dict[tuple[str, str], Callable[[], Snnc | Peer]] = {
            ("snnc", "cuda"): lambda: Snnc(problem, device, Path(above) / "project")
        }
        makers |= {(p, v): lambda p=p, v=v: Peer(problem, device, p, v) for p in peers for v in VARIANTS}  # type: ignore[misc]
        for key, make in makers.items():
            row = {"workload": workload.label, "batch": workload.batch, "engine": key[0], "variant": key[1]}
            try:
                engine = make()
                wrong = differs(engine, loss, gradients)
            except Exception as error:  # whatever a framework raises is its row; the others are measured all the same
                wrong = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
            rows.append(row | ({"left_out": wrong} if wrong else {"ms": []}))
            if not wrong:
                running[key] = engine
        for _ in range(rounds):
            for row in rows:
                if "ms" in row:
                    row["ms"] += timed(running[row["engine"], row["variant"]], synchronise)
    return [row | {"ms_median": statistics.median(row["ms"])} if row.get("ms") else row for row in rows]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nets", default="w1-5,w2-3")
    parser.add_argument("--batches", default="64,256,1024")
    parser.add_argument("--engines", default=",".join(PEERS), help="beside snnc")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--small", action="store_true", help="5 steps, 4 samples")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    if given.device == "cpu":
        os.environ["SNNC_CUDA_ON_HOST"] = "1"
    else:
        torch.set_default_device("cuda")
        torch.backends.cuda.matmul.allow_tf32 = False
    name = torch.cuda.get_device_name() if given.device == "cuda" else "the processor, a check: these times mean nothing"
    facts = {"device": name, "torch": torch.__version__, "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"), "times": "measured"}
    rows = []
    for label in given.nets.split(","):
        for batch in [4] if given.small else [int(b) for b in given.batches.split(",")]:
            chosen = replace(workloads(label)[0], batch=batch)
            rows += measure(chosen.small(5, 4) if given.small else chosen, given.engines.split(","), given.rounds, given.device)
    print("; ".join(f"{key} {value}" for key, value in facts.items()))
    for row in rows:
        told = f"{row['ms_median']:10.3f} ms" if "ms_median" in row else f"left out: {row['left_out']}"
        print(f"{row['workload']:10} {row['batch']:5d} {row['engine']:12} {row['variant']:9} {told}")
    if given.json:
        given.json.write_text(json.dumps({"facts": facts, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
