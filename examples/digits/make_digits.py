"""Train a small spiking network in snnTorch on scikit-learn's digits and export it: digits.onnx, digits.npz, digits.json.

The three files are in the repository; this script is needed only to create them again:

    pip install torch snntorch scikit-learn onnx
    python examples/digits/make_digits.py

The digits are the test part of the UCI "Optical Recognition of Handwritten Digits" set, as distributed with scikit-learn (BSD).
"""

from __future__ import annotations

import json
import platform
import warnings
from pathlib import Path

import numpy as np
import onnx
import sklearn
import snntorch
import torch
from sklearn.datasets import load_digits
from snntorch import functional, surrogate

STEPS = 25
HIDDEN = 100
BATCH = 32
EPOCHS = 9
TEST = 360
HERE = Path(__file__).parent


class Digits(torch.nn.Module):
    """A network of 64 inputs, 100 leaky neurons and 10 leaky neurons; a call runs the whole sequence."""

    def __init__(self):
        super().__init__()
        slope = surrogate.fast_sigmoid(slope=25)
        self.fc1 = torch.nn.Linear(64, HIDDEN)
        self.lif1 = snntorch.Leaky(beta=0.9, spike_grad=slope)
        self.fc2 = torch.nn.Linear(HIDDEN, 10)
        self.lif2 = snntorch.Leaky(beta=0.9, spike_grad=slope)

    def forward(self, spikes):
        """Map spikes [time, batch, 64] to spikes [time, batch, 10]."""
        mem1, mem2 = self.lif1.init_leaky(), self.lif2.init_leaky()
        out = []
        for step in range(STEPS):
            spk1, mem1 = self.lif1(self.fc1(spikes[step]), mem1)
            spk2, mem2 = self.lif2(self.fc2(spk1), mem2)
            out.append(spk2)
        return torch.stack(out)


def latency_code(images: np.ndarray) -> np.ndarray:
    """Encode images [samples, 64] of 0..16 as [samples, STEPS, 64]: one spike per pixel, earlier for brighter ones, none for black."""
    when = np.rint((16 - images) / 15 * (STEPS - 1)).astype(int)
    spikes = np.arange(STEPS)[None, :, None] == when[:, None, :]
    return (spikes & (images > 0)[:, None, :]).astype(np.uint8)


def accuracy(net: torch.nn.Module, x: np.ndarray, y: np.ndarray) -> float:
    """Return the share of samples for which the neuron of the label fires most."""
    with torch.no_grad():
        counts = net(torch.tensor(x, dtype=torch.float32).transpose(0, 1)).sum(0)
    return float((counts.argmax(1).numpy() == y).mean())


def train(net: torch.nn.Module, x: np.ndarray, y: np.ndarray) -> None:
    """Train with Adam on the cross entropy of the spike counts."""
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    loss_of = functional.ce_count_loss()
    order = np.random.default_rng(0)
    for epoch in range(EPOCHS):
        losses = []
        for pick in np.array_split(order.permutation(len(x)), len(x) // BATCH):
            loss = loss_of(net(torch.tensor(x[pick], dtype=torch.float32).transpose(0, 1)), torch.tensor(y[pick]).long())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"epoch {epoch + 1}: loss {np.mean(losses):.4f}, train accuracy {accuracy(net, x, y):.4f}")


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(1).permutation(len(images))
    x, y = latency_code(images)[order], labels[order].astype(np.uint8)
    train_x, train_y, test_x, test_y = x[:-TEST], y[:-TEST], x[-TEST:], y[-TEST:]
    net = Digits()
    train(net, train_x, train_y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            net.eval(),
            (torch.zeros(STEPS, 2, 64),),
            HERE / "digits.onnx",
            dynamo=False,
            input_names=["spikes"],
            output_names=["fired"],
            dynamic_axes={"spikes": {1: "batch"}, "fired": {1: "batch"}},
        )
    onnx.checker.check_model(str(HERE / "digits.onnx"))
    np.savez_compressed(HERE / "digits.npz", x=train_x, y=train_y, test_x=test_x, test_y=test_y)
    facts = {
        "test_accuracy": accuracy(net, test_x, test_y),
        "train_accuracy": accuracy(net, train_x, train_y),
        "test_samples": TEST,
        "steps": STEPS,
        "made_with": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "snntorch": snntorch.__version__,
            "scikit-learn": sklearn.__version__,
            "onnx": onnx.__version__,
        },
    }
    (HERE / "digits.json").write_text(json.dumps(facts, indent=2) + "\n")
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
