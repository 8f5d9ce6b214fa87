"""A network with batch normalisations in snnc and in PyTorch."""

import numpy as np
import torch
from torch_spikes import fast_sigmoid_spike

import snnc

STEPS, BATCH, CLASSES = 5, 4, 3
SPIKE = fast_sigmoid_spike()
GAIN, MOMENTUM, EPS = 0.7, 0.3, 1e-3
NORM = snnc.BatchNorm(gain=GAIN, momentum=MOMENTUM, eps=EPS)
NORM_OF_STEPS = snnc.BatchNorm(gain=GAIN, momentum=MOMENTUM, eps=EPS, each_step=True)


def network(dropout=False, norm=NORM):
    """Two normalised layers after one another, the first with channels, the second without space."""
    parts = [snnc.Dropout(0.3, 5)] if dropout else []
    return snnc.Sequential(
        (2, 6, 6),
        snnc.Conv(3, 3),
        norm,
        snnc.LIF(beta=0.8),
        snnc.MaxPool(2),
        snnc.Dense(7),
        norm,
        snnc.LIF(beta=0.7, threshold=0.6),
        *parts,
        snnc.Dense(CLASSES),
        snnc.LI(beta=0.9),
        seed=2,
    )


def data(seed=0, samples=BATCH):
    generator = np.random.default_rng(seed)
    return (generator.random((samples, STEPS, 2, 6, 6)) < 0.4).astype(np.float32), np.arange(samples) % CLASSES


class Theirs(torch.nn.Module):
    """The same in PyTorch, layer by layer, as SpikingJelly's step mode "m" runs it."""

    def __init__(self, weights, each_step=False):
        super().__init__()
        self.conv, self.fc1, self.fc2 = torch.nn.Conv2d(2, 3, 3), torch.nn.Linear(12, 7), torch.nn.Linear(7, CLASSES)
        self.bn1, self.bn2 = (kind(n, EPS, MOMENTUM) for kind, n in ((torch.nn.BatchNorm2d, 3), (torch.nn.BatchNorm1d, 7)))
        self.each_step = each_step
        for name, ours in PLACES.items():
            module, _, what = name.partition(".")
            with torch.no_grad():
                tensor = getattr(getattr(self, module), what)
                tensor.copy_(torch.tensor(weights[ours]).reshape(tensor.shape))

    def neurons(self, x, beta, threshold):
        v, found = torch.zeros_like(x[0]), []
        for current in x:
            v = beta * v + current - (v > threshold).float() * threshold
            found.append(SPIKE(v - threshold))
        return torch.stack(found)

    def forward(self, x, mask=1):
        steps, batch = x.shape[:2]

        def over(layer, x):
            if self.each_step and layer in (self.bn1, self.bn2):
                return torch.stack([layer(step) for step in x])
            return layer(x.flatten(0, 1)).unflatten(0, (steps, batch))

        s = self.neurons(over(self.bn1, over(self.conv, x)), 0.8, 1.0)
        s = over(lambda x: torch.nn.functional.max_pool2d(x, 2).flatten(1), s)
        s = self.neurons(over(self.bn2, over(self.fc1, s)), 0.7, 0.6)
        current, v, total = over(self.fc2, s * mask), 0, 0
        for t in range(steps):
            v = 0.9 * v + current[t]
            total = total + v
        return total / steps


PLACES = {
    "conv.weight": "input_to_lif_conv.weight",
    "conv.bias": "input_to_lif_conv.bias",
    "bn1.weight": "input_to_lif_batchnorm.weight",
    "bn1.bias": "input_to_lif_batchnorm.bias",
    "fc1.weight": "lif_to_lif2_dense.weight",
    "fc1.bias": "lif_to_lif2_dense.bias",
    "bn2.weight": "lif_to_lif2_batchnorm.weight",
    "bn2.bias": "lif_to_lif2_batchnorm.bias",
    "fc2.weight": "lif2_to_li.weight",
    "fc2.bias": "lif2_to_li.bias",
}
