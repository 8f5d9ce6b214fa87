"""A network as snnc's module and in plain PyTorch, for tests of modules under autograd."""

import torch
from torch_spikes import fast_sigmoid_spike

import snnc

T, B = 7, 5
step = fast_sigmoid_spike()


class Same(torch.nn.Module):
    """The network of :func:`network`, step by step."""

    def __init__(self, weights, truncate=T):
        super().__init__()
        self.truncate = truncate
        self.values = torch.nn.ParameterDict(
            {name.replace(".", "_"): torch.nn.Parameter(v.detach().clone()) for name, v in weights.items()}
        )

    def forward(self, x):
        p = self.values
        v = s = m = torch.zeros(())
        found = []
        for t, current in enumerate(x @ p["input_to_hidden_weight"].t() + p["input_to_hidden_bias"]):
            if t % self.truncate == 0:
                v, m = v.detach(), m.detach()
            v = 0.9 * v * (1 - s.detach()) + current
            s = step(v - 1)
            m = 0.8 * m + s @ p["hidden_to_readout_weight"].t() + p["hidden_to_readout_bias"]
            found.append(m)
        return torch.stack(found)


def network():
    net = snnc.Network("net")
    source = net.input(6, name="input", kind="values")
    hidden = net.population(12, snnc.LIF(beta=0.9, reset="zero"), name="hidden")
    readout = net.population(3, snnc.LI(beta=0.8), name="readout")
    net.connect(source, hidden, snnc.Dense(seed=1))
    net.connect(hidden, readout, snnc.Dense(seed=2))
    return net


def close(found, wanted):
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


def three_outputs():
    """Return a convolution and a dense layer, with spikes, membranes and classes as outputs."""
    net = snnc.Network("three")
    source = net.input((1, 4, 4), name="input", kind="values")
    hidden = net.population((2, 2, 2), snnc.LIF(beta=0.9, reset="zero"), name="hidden")
    readout = net.population(3, snnc.LI(beta=0.8), name="readout")
    net.connect(source, hidden, snnc.Conv(2, 3, seed=1))
    net.connect(hidden, readout, snnc.Dense(seed=2))
    net.output(hidden, name="spikes")
    net.output(hidden, "v", name="membrane")
    net.output(readout, name="classes")
    return net
