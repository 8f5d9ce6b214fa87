"""Run a PyTorch training loop with a layer compiled by snnc, in one and in two processes of torchrun (on the CPU, with gloo).

    python examples/torchrun/torchrun.py [folder]

Each process runs ``train`` of this file; without torchrun's environment variables the file starts both runs and draws their losses.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import torch
from torch.nn.parallel import DistributedDataParallel

import snnc
import snnc.torch

STEPS, BATCH, UPDATES = 20, 64, 60


def patterns(samples, seed):
    """Return spikes [T, samples, 50] and classes: a noisy wave over the inputs, at one of three speeds."""
    random = np.random.default_rng(seed)
    y = random.integers(0, 3, samples)
    at = (np.arange(STEPS)[:, None] * (y + 1) + random.integers(0, 50, samples)) % 50
    near = np.abs(np.arange(50) - at[:, :, None]) < 2
    return torch.tensor((near ^ (random.random(near.shape) < 0.02)).astype(np.float32)), torch.tensor(y)


def train(folder):
    """Train in this process on its share of each batch; rank 0 writes the losses of whole batches."""
    torch.distributed.init_process_group("gloo")
    rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
    net = snnc.Sequential(50, snnc.Dense(64), snnc.Recurrent(snnc.LIF(beta=0.9)), snnc.Dense(3), snnc.LI(beta=0.9), seed=1)
    layer = DistributedDataParallel(snnc.torch.Module(net, target="cpu", surrogate="fast_sigmoid:10"))
    optimizer = torch.optim.AdamW(layer.parameters(), lr=0.005)
    x, y = patterns(BATCH * UPDATES, 1)
    losses = []
    for batch in range(UPDATES):
        share = slice(batch * BATCH + rank * BATCH // world, batch * BATCH + (rank + 1) * BATCH // world)
        loss = torch.nn.functional.cross_entropy(layer(x[:, share]).mean(0), y[share])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
        optimizer.step()
        total = loss.detach().clone()
        torch.distributed.all_reduce(total)
        losses.append(total.item() / world)
    if rank == 0:
        (folder / f"losses-{world}.json").write_text(json.dumps(losses))
    torch.distributed.destroy_process_group()


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for processes in (1, 2):
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes), __file__, str(folder)]
        subprocess.run(command, check=True, env={"OMP_NUM_THREADS": "1", **os.environ})
    one, two = (json.loads((folder / f"losses-{n}.json").read_text()) for n in (1, 2))
    print(f"one process: loss {one[0]:.4f} -> {one[-1]:.4f}; two processes: {two[0]:.4f} -> {two[-1]:.4f}")
    print(f"first update: the losses differ by {abs(one[0] - two[0]):.1e}")
    draw(folder / "picture.png", one, two)


def draw(path, one, two):
    """Draw the losses of both runs over the updates."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
    axes.plot(one, label="1 process, 64 samples per update", linewidth=3, alpha=0.5)
    axes.plot(two, "--", label="2 processes, 32 samples each", color="black", linewidth=1)
    axes.set(xlabel="update", ylabel="cross entropy", ylim=(0, None))
    axes.legend()
    figure.savefig(path, dpi=90)


if __name__ == "__main__":
    chosen = Path(sys.argv[1] if len(sys.argv) > 1 else "build/torchrun")
    train(chosen) if "RANK" in os.environ else main(chosen)
