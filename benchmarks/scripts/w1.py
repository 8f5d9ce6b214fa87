"""Measure a training step of workload W1 on the emulated IPU: ``python benchmarks/scripts/w1.py``.

W1: T=100, B=64, 700 -> 256 recurrent LIF -> 20 leaky readout, input spikes with probability 5 %, cross entropy of the mean membrane,
Adam. The emulator and the NumPy reference run training steps in turns. The script prints the wall-clock and CPU seconds of a step of each,
the largest differences of their losses and gradients, the peak memory, and the predicted and the emulated cycles. Both start each step from
the same weights: after different rounding, a neuron close to its threshold may spike in only one of the two engines, and a recurrent
network amplifies this over many updates.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

import snnc
from snnc.benchmarks import everyday

STEPS, BATCH, HIDDEN, DENSITY = 100, 64, 256, 0.05


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="number of training steps of the emulator and of the reference")
    parser.add_argument("--target", default="gc200")
    arguments = parser.parse_args()
    rounds, target = arguments.rounds, arguments.target

    rng = np.random.default_rng(0)
    x = (rng.random((BATCH, STEPS, everyday.INPUTS)) < DENSITY).astype(np.float32)
    y = rng.integers(0, everyday.CLASSES, BATCH)
    options = {"steps": STEPS, "batch": BATCH, "loss": "ce_mean_membrane", "optimizer": "adam", "surrogate": "fast_sigmoid:25"}
    net = everyday.w_network((HIDDEN,), recurrent=True, name="W1")
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        machine = snnc.compile(net, target, **options, calibrate=x.swapaxes(0, 1), output=Path(folder) / "w1")
        print(f"compiled, built and opened in {time.perf_counter() - start:.1f} s for {target}")
        reference = snnc.compile(net, **options)
        inputs = {machine.program.inputs[0].id: np.ascontiguousarray(x.swapaxes(0, 1))}
        seconds: dict[str, list[float]] = {"emulated": [], "reference": []}
        processor: dict[str, list[float]] = {"emulated": [], "reference": []}
        worst_loss = worst_gradient = 0.0
        cycles: list[int] = []
        for _ in range(rounds):
            machine.engine.set_parameters(reference.engine.get_parameters())
            losses = []
            for name, session in (("emulated", machine), ("reference", reference)):
                start, used = time.perf_counter(), time.process_time()
                losses.append(session.engine.train_batch(inputs, y, 1e-3))
                seconds[name].append(time.perf_counter() - start)
                processor[name].append(time.process_time() - used)
            cycles.append(machine.engine.profile()["emulator"]["cycles_last_run"])
            worst_loss = max(worst_loss, abs(losses[0] - losses[1]))
            ours, theirs = machine.engine.gradients(), reference.engine.gradients()
            errors = (np.linalg.norm(ours[k] - g) / np.linalg.norm(g) for k, g in theirs.items())
            worst_gradient = max(worst_gradient, *map(float, errors))
        for name, values in seconds.items():
            wall = f"median {statistics.median(values):.3f} s a step, {min(values):.3f} to {max(values):.3f}"
            print(f"{name:10} {wall}; {statistics.median(processor[name]):.3f} s of CPU time")
        print(f"largest difference: loss {worst_loss:.1e}, a gradient {worst_gradient:.1e} (norm of difference over norm)")
        print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB (both engines in this process)")
        predicted, first, last = machine.plan.cycles, cycles[0], cycles[-1]
        print(f"cycles of the first step: predicted {predicted:,.0f}, emulated {first:,} ({predicted / first - 1:+.1%})")
        print(f"cycles of the last step, with the activity that training led to: emulated {last:,}")


if __name__ == "__main__":
    main()
