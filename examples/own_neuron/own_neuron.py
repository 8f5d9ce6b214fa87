"""Define a neuron by equations, run it on the reference and on an emulated IPU, and train a network of it on the CPU.

    python examples/own_neuron/own_neuron.py [folder]
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import snnc

STEPS = 120
TIRED = snnc.Neuron(
    "tired",
    inputs="i",
    states={"v": 0, "b": 0},
    params={"beta": 0.9, "rho": 0.97, "kappa": 1.8},
    equations="""
        z = spike(v - 1 - kappa*b)          # the spike of the previous step, which resets
        b = rho*b + (1 - rho)*z             # each spike raises the threshold for a while
        v = beta*v + i - detach(z)
        s = spike(v - 1 - kappa*b)
    """,
    output="s",
)


def probe():
    """Return a network of one neuron, with its spikes, membrane and adaptation as outputs."""
    net = snnc.Network("probe")
    current = net.input(1, kind="values", name="current")
    cell = net.population(1, TIRED, name="cell")
    net.connect(current, cell, snnc.OneToOne(1.0))
    net.output(cell, name="spikes")
    net.output(cell, "v", name="membrane")
    net.output(cell, "b", name="adaptation")
    return net


def bursts(samples, seed):
    """Return spikes [samples, T, 20] and classes: the half of the inputs that fires more often in the first third of the sequence."""
    random = np.random.default_rng(seed)
    y = random.integers(0, 2, samples)
    rate = np.full((samples, 60, 20), 0.02)
    for sample, half in enumerate(y):
        rate[sample, :20, half * 10 : half * 10 + 10] = 0.15
    return (random.random(rate.shape) < rate).astype(np.uint8), y


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    current = np.zeros((STEPS, 1, 1), np.float32)
    current[20:90] = 0.25
    with snnc.compile(probe()) as reference, snnc.compile(probe(), target="gc200", batch=1, steps=STEPS) as machine:
        outputs, emulated = reference.run({"current": current}), machine.run({"current": current})
    assert (outputs["spikes"] == emulated["spikes"]).all()
    print(f"{int(outputs['spikes'].sum())} spikes, the same steps on the reference and on the emulated IPU")

    net = snnc.Sequential(20, snnc.Dense(40), TIRED, snnc.Dense(2), snnc.LI(beta=0.95), name="bursts")
    with snnc.compile(net, target="cpu", loss="ce_last_membrane", optimizer="adam:0.01", surrogate="fast_sigmoid:10") as session:
        history = session.fit(*bursts(512, 1), epochs=6, batch=32)
        accuracy = session.evaluate(*bursts(256, 2))
    print(f"trained: loss {history.losses[0]:.3f} -> {history.losses[-1]:.3f}, test accuracy {accuracy:.3f}")
    draw(folder / "picture.png", current, outputs, history.losses)


def draw(path, current, outputs, losses):
    """Draw the response to a step of current, and the losses of training."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3), width_ratios=(3, 1), layout="constrained")
    time = np.arange(STEPS)
    left.plot(time, outputs["membrane"][:, 0, 0], label="membrane v")
    left.plot(time, 1 + 1.8 * outputs["adaptation"][:, 0, 0], "--", label="threshold 1 + kappa b")
    left.plot(time, current[:, 0, 0], color="grey", linewidth=1, label="current i")
    left.vlines(time[outputs["spikes"][:, 0, 0] > 0], 1.9, 2.1, color="black", label="spikes")
    left.set(xlabel="time step", title="A neuron that tires, given a step of current")
    left.legend(loc="upper right", fontsize=8)
    right.plot(range(1, len(losses) + 1), losses, marker="o")
    right.set(xlabel="epoch", title="training loss", ylim=(0, None))
    figure.savefig(path, dpi=90)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/own_neuron"))
