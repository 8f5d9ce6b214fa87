"""Train three classification tasks on a CPU in snnc and in snnTorch: ``python benchmarks/scripts/cpu_tasks.py --json tasks.json``.

The network has LIF neurons (beta 0.9, reset to zero, fast sigmoid of slope 25) and a leaky readout; the loss is the cross entropy of the
readout's mean. Both engines use Adam and, for each of five seeds, the same initial weights and the same batches in the same order. Each run
is a separate process, and the engines alternate. The output shows the accuracy on the test set of each engine (mean and standard deviation
over the seeds), its wall-clock time of all epochs (median over the seeds), and snnTorch's time divided by snnc's with the same seed (median
over the seeds). These times do not include the build; the JSON file lists its time separately.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import task_data


@dataclass(frozen=True)
class TrainingTask:
    data: Callable[[], tuple[Any, Any, Any, Any]]
    hidden: int
    classes: int
    epochs: int
    batch: int
    lr: float
    gain: float


def split(x: Any, y: Any, test: int) -> tuple[Any, Any, Any, Any]:
    return x[test:], y[test:], x[:test], y[:test]


TASKS = {
    "digits": TrainingTask(task_data.digits, 100, 10, 15, 32, 2e-3, 4.0),
    "yin-yang": TrainingTask(lambda: split(*task_data.yin_yang(6000, 0), 1000), 120, 3, 30, 64, 2e-3, 5.0),
    "randman": TrainingTask(lambda: split(*task_data.randman(6000, 0), 1000), 128, 10, 15, 64, 2e-3, 5.0),
}
ENGINES = ("snntorch", "snnc")


def initial(task: TrainingTask, inputs: int, seed: int) -> dict[str, Any]:
    """Return weights, uniform in ±gain / sqrt(inputs of the layer), where the readout's gain is 1, and biases of 0."""
    rng = np.random.default_rng(seed)
    shapes = {"hidden": (task.hidden, inputs), "readout": (task.classes, task.hidden)}
    weights = {f"{n}.weight": rng.uniform(-1, 1, s).astype(np.float32) * np.float32(task.gain / s[1] ** 0.5) for n, s in shapes.items()}
    weights["readout.weight"] /= np.float32(task.gain)
    return weights | {f"{n}.bias": np.zeros(s[0], np.float32) for n, s in shapes.items()}


def orders(task: TrainingTask, samples: int, seed: int) -> list[Any]:
    """Return the shuffled sample indices of each epoch; a remainder that does not fill a batch is omitted."""
    rng = np.random.default_rng(1000 + seed)
    return [rng.permutation(samples)[: samples // task.batch * task.batch] for _ in range(task.epochs)]


def train_snnc(
    task: TrainingTask, data: tuple[Any, Any, Any, Any], weights: dict[str, Any], orders: list[Any], target: str
) -> dict[str, Any]:
    import snnc

    x, y, test_x, test_y = data
    begin = time.perf_counter()
    net = snnc.Network("task")
    events = net.input(x.shape[2], name="input")
    hidden = net.population(task.hidden, snnc.LIF(beta=0.9, reset="zero"), name="hidden")
    readout = net.population(task.classes, snnc.LI(beta=0.9), name="readout")
    net.connect(events, hidden, snnc.Dense(), name="hidden_in")
    net.connect(hidden, readout, snnc.Dense(), name="readout_in")
    options = {"loss": "ce_mean_membrane", "optimizer": snnc.Adam(task.lr), "surrogate": "fast_sigmoid:25"}
    with snnc.compile(net, target, steps=x.shape[1], batch=task.batch, **options) as session:
        session.load_state_dict({name.replace(".", "_in."): value for name, value in weights.items()}, strict=False)
        start = time.perf_counter()
        for order in orders:
            session.fit(x[order], y[order], shuffle=False)
        seconds = time.perf_counter() - start
        return {"accuracy": session.evaluate(test_x, test_y), "seconds": seconds, "build_s": start - begin}


def train_snntorch(
    task: TrainingTask, data: tuple[Any, Any, Any, Any], weights: dict[str, Any], orders: list[Any], target: str
) -> dict[str, Any]:
    import snntorch
    import torch
    from torch.nn import functional

    x, test_x = (torch.from_numpy(np.ascontiguousarray(a.swapaxes(0, 1))) for a in (data[0], data[2]))
    y, test_y = (torch.from_numpy(a) for a in (data[1], data[3]))
    begin = time.perf_counter()
    parameters = {name: torch.nn.Parameter(torch.from_numpy(value.copy())) for name, value in weights.items()}
    optimizer = torch.optim.Adam(parameters.values(), lr=task.lr, fused=True)
    lif = snntorch.Leaky(0.9, spike_grad=snntorch.surrogate.fast_sigmoid(25), reset_mechanism="zero")
    li = snntorch.Leaky(0.9, reset_mechanism="none")

    def outputs(spikes: torch.Tensor) -> torch.Tensor:
        for neurons, name in ((lif, "hidden"), (li, "readout")):
            currents = functional.linear(spikes, parameters[f"{name}.weight"], parameters[f"{name}.bias"])
            state, outputs_of_steps = torch.zeros_like(currents[0]), []
            for current in currents.unbind(0):
                fired, state = neurons(current, state)
                outputs_of_steps.append(fired if name == "hidden" else state)
            spikes = torch.stack(outputs_of_steps)
        return spikes.mean(0)

    start = time.perf_counter()
    for order in orders:
        for at in range(0, len(order), task.batch):
            chosen = torch.from_numpy(order[at : at + task.batch])
            optimizer.zero_grad(set_to_none=True)
            functional.cross_entropy(outputs(x[:, chosen]), y[chosen]).backward()
            optimizer.step()
    seconds = time.perf_counter() - start
    with torch.no_grad():
        accuracy = float((outputs(test_x).argmax(1) == test_y).float().mean())
    return {"accuracy": accuracy, "seconds": seconds, "build_s": start - begin}


def run(name: str, engine: str, seed: int, target: str) -> dict[str, Any]:
    task = TASKS[name]
    data = task.data()
    train = train_snnc if engine == "snnc" else train_snntorch
    result = train(task, data, initial(task, data[0].shape[2], seed), orders(task, len(data[0]), seed), target)
    return {"task": name, "engine": engine, "seed": seed, "epochs": task.epochs} | result


def summary(name: str, rows: list[dict[str, Any]]) -> str:
    parts = []
    for engine in ENGINES:
        accuracy, seconds = ([r[key] for r in rows if r["engine"] == engine] for key in ("accuracy", "seconds"))
        spread = statistics.stdev(accuracy) if len(accuracy) > 1 else 0.0
        parts.append(f"{engine} {100 * statistics.mean(accuracy):.1f} ± {100 * spread:.1f} % in {statistics.median(seconds):.2f} s")
    times = {(r["engine"], r["seed"]): r["seconds"] for r in rows}
    ratios = [times["snntorch", seed] / times["snnc", seed] for _, seed in times if ("snnc", seed) in times]
    return f"{name:9} " + ", ".join(parts) + f": {statistics.median(ratios):.1f} x"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for name in chosen.tasks:
        for seed, engine in itertools.product(range(chosen.seeds), ENGINES):
            with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
                rows.append(pool.submit(run, name, engine, seed, chosen.target).result())
        print(summary(name, [row for row in rows if row["task"] == name]), flush=True)
    if chosen.json:
        chosen.json.write_text(json.dumps({"rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
