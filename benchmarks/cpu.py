"""Training steps on a processor: snnc against snnTorch, the same model, weights and data.

Each engine runs in processes of its own, by turns, because a machine is rarely quiet; the ratio is that of neighbouring turns::

    python benchmarks/cpu.py --workloads W1 W1-ff --rounds 5 --json rows.json

W1: 100 steps, batch 64, 700 -> 256 LIF, recurrent -> 20 leaky readout, cross entropy of its mean, Adam, 5 % input spikes. W1-ff: without
recurrence. W2: 250 steps, two recurrent layers of 1,024, 3 %. W3: W1 with a batch of 1. LIF: beta 0.9, reset to zero, surrogate
1 / (1 + 25 |x|)^2; no biases. Both give the loss of their first steps, which must agree, before any time counts.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class Workload:
    steps: int
    batch: int
    hidden: tuple[int, ...]
    recurrent: bool
    density: float
    repeats: int


WORKLOADS = {
    "W1": Workload(100, 64, (256,), True, 0.05, 20),
    "W1-ff": Workload(100, 64, (256,), False, 0.05, 30),
    "W2": Workload(250, 64, (1024, 1024), True, 0.03, 3),
    "W3": Workload(100, 1, (256,), True, 0.05, 60),
}
INPUTS, CLASSES, CHECKED = 700, 20, 3


def weights(w: Workload) -> dict[str, np.ndarray]:
    """Weights by connection, drawn so that some percent of the neurons fire."""
    random = np.random.default_rng(0)
    found, last = {}, INPUTS
    for n, size in enumerate(w.hidden):
        found[f"in{n}"] = random.normal(size=(size, last)) * (0.33 / np.sqrt(last * (w.density if n == 0 else 0.05)))
        if w.recurrent:
            found[f"rec{n}"] = random.normal(size=(size, size)) * (0.1 / np.sqrt(size * 0.05))
        last = size
    found["out"] = random.normal(size=(CLASSES, last)) / np.sqrt(last)
    return {name: value.astype(np.float32) for name, value in found.items()}


def data(w: Workload) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(1)
    x = (random.random((w.steps, w.batch, INPUTS)) < w.density).astype(np.float32)
    return x, random.integers(0, CLASSES, w.batch)


def run_snnc(w: Workload, threads: int) -> dict:
    import os

    os.environ["SNNC_THREADS"] = str(threads)
    import snnc

    given = weights(w)
    net = snnc.Network("workload")
    last, labels = net.input(INPUTS), {}
    for n, size in enumerate(w.hidden):
        hidden = net.population(size, snnc.LIF(beta=0.9, reset="zero"), name=f"hidden{n}")
        for name, source, delay in ((f"in{n}", last, 0), (f"rec{n}", hidden, 1)):
            if name in given:
                net.connect(source, hidden, snnc.Dense(bias=False), delay=delay, name=name)
                labels[f"{name}.weight"] = given[name]
        last = hidden
    readout = net.population(CLASSES, snnc.LI(beta=0.9), name="readout")
    net.connect(last, readout, snnc.Dense(bias=False), name="out")
    labels["out.weight"] = given["out"]
    options = {"loss": "ce_mean_membrane", "optimizer": "adam:0.001", "surrogate": "fast_sigmoid:25"}
    begun = time.perf_counter()
    session = snnc.compile(net, target="cpu", steps=w.steps, batch=w.batch, **options)
    compiled = time.perf_counter() - begun
    session.load_state_dict(labels, strict=False)
    x, y = data(w)
    inputs, target = {"x0": x}, y.astype(np.int32)
    return {"compile_s": compiled, **timed(lambda: session.engine.train_batch(inputs, target, 1e-3), w.repeats)}


def run_snntorch(w: Workload, threads: int) -> dict:
    import snntorch
    import torch
    from snntorch import surrogate

    torch.set_num_threads(threads)
    given = {name: torch.nn.Parameter(torch.tensor(value)) for name, value in weights(w).items()}
    gradient = surrogate.fast_sigmoid(slope=25)
    # RLeaky's reset to zero takes the current along, which is another model; so the recurrent product stands beside Leaky.
    layers = [snntorch.Leaky(beta=0.9, reset_mechanism="zero", spike_grad=gradient) for _ in w.hidden]
    readout = snntorch.Leaky(beta=0.9, reset_mechanism="none")
    optimizer = torch.optim.Adam(given.values(), lr=1e-3)
    x, y = map(torch.tensor, data(w))

    def step() -> float:
        states = [layer.reset_mem() for layer in layers]
        spikes = [torch.zeros(w.batch, size) for size in w.hidden]
        membrane, record = readout.reset_mem(), []
        for arriving in torch.nn.functional.linear(x, given["in0"]).unbind(0):
            current = arriving
            for n, layer in enumerate(layers):
                if n:
                    current = torch.nn.functional.linear(spikes[n - 1], given[f"in{n}"])
                if w.recurrent:
                    current = current + torch.nn.functional.linear(spikes[n], given[f"rec{n}"])
                spikes[n], states[n] = layer(current, states[n])
            _, membrane = readout(torch.nn.functional.linear(spikes[-1], given["out"]), membrane)
            record.append(membrane)
        loss = torch.nn.functional.cross_entropy(torch.stack(record).mean(0), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return float(loss)

    return timed(step, w.repeats)


def timed(step, repeats: int) -> dict:
    losses = [step() for _ in range(CHECKED)]
    times, used = [], []
    for _ in range(repeats):
        begun, spent = time.perf_counter(), time.process_time()
        step()
        times.append(1e3 * (time.perf_counter() - begun))
        used.append(1e3 * (time.process_time() - spent))
    return {"losses": losses, "ms_median": statistics.median(times), "ms_min": min(times), "ms_processor": statistics.median(used)}


ENGINES = {"snnc": run_snnc, "snntorch": run_snntorch}


def turn(engine: str, workload: str, threads: int) -> dict:
    command = [sys.executable, __file__, "--child", engine, workload, "--threads", str(threads)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1])


def compare(workload: str, engines: list[str], rounds: int, threads: int) -> list[dict]:
    found: dict[str, list[dict]] = {engine: [] for engine in engines}
    for _ in range(rounds):
        for engine in engines:
            found[engine].append(turn(engine, workload, threads))
    rows = []
    for engine in engines:
        wanted, seen = found["snnc"][0]["losses"], found[engine][0]["losses"]
        if not np.allclose(seen, wanted, rtol=2e-4):
            raise SystemExit(f"{workload}: {engine} computes {seen}, snnc {wanted}: they do not run the same model")
        ratios = [other["ms_median"] / own["ms_median"] for other, own in zip(found[engine], found["snnc"], strict=True)]
        worked = [other["ms_processor"] / own["ms_processor"] for other, own in zip(found[engine], found["snnc"], strict=True)]
        rows.append(
            {
                "workload": workload,
                "engine": engine,
                "threads": threads,
                "ms_median": statistics.median(r["ms_median"] for r in found[engine]),
                "ms_min": min(r["ms_min"] for r in found[engine]),
                "ratio": statistics.median(ratios),
                "ms_processor": statistics.median(r["ms_processor"] for r in found[engine]),
                "ratio_of_processor_time": statistics.median(worked),
                "losses": seen,
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workloads", nargs="+", default=["W1", "W1-ff"], choices=list(WORKLOADS))
    parser.add_argument("--engines", nargs="+", default=list(ENGINES), choices=list(ENGINES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child:
        print(json.dumps(ENGINES[chosen.child[0]](WORKLOADS[chosen.child[1]], chosen.threads)))
        return
    rows = []
    for workload in chosen.workloads:
        for row in compare(workload, chosen.engines, chosen.rounds, chosen.threads):
            rows.append(row)
            print(
                f"{row['workload']:6} {row['engine']:9} median {row['ms_median']:8.2f} ms, fastest {row['ms_min']:8.2f} ms; "
                f"processor time {row['ms_processor']:8.2f} ms; "
                f"x{row['ratio']:.1f}, of processor time x{row['ratio_of_processor_time']:.1f}"
            )
    if chosen.json:
        chosen.json.write_text(json.dumps({"rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
