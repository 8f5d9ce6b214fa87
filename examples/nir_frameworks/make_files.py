"""Export one network from snnTorch, Norse and SpikingJelly with their own exporters: NAME.nir and answers.npz.

The files are in the repository; this script is needed only to create them again:

    pip install torch snntorch norse spikingjelly nir nirtorch
    python examples/nir_frameworks/make_files.py

The three networks have the same weights up to a factor that compensates for the input gain of the framework's neuron.
Their neurons reset in different ways, so their spikes differ.
"""

from pathlib import Path

import nir
import norse.torch as norse
import numpy as np
import snntorch
import torch
from norse.torch.utils.export_nir import to_nir as norse_to_nir
from snntorch.export_nir import export_to_nir as snntorch_to_nir
from spikingjelly.activation_based import functional, neuron
from spikingjelly.activation_based.nir_exchange import export_to_nir as spikingjelly_to_nir

HERE = Path(__file__).parent
STEPS, INPUTS, HIDDEN, OUTPUTS = 60, 16, 24, 6


def layers(neurons, factor, *, bias=True):
    """Return two dense layers, each followed by neurons; the weights are the same in every call, up to the factor."""
    torch.manual_seed(0)
    parts = []
    for sources, targets in ((INPUTS, HIDDEN), (HIDDEN, OUTPUTS)):
        dense = torch.nn.Linear(sources, targets, bias=bias)
        torch.nn.init.normal_(dense.weight, 0.15 * factor, 0.5 * factor)
        if bias:
            torch.nn.init.zeros_(dense.bias)
        parts += [dense, neurons(targets)]
    return parts


def with_snntorch(x):
    net = torch.nn.Sequential(*layers(lambda n: snntorch.Leaky(beta=torch.full((n,), 0.9), threshold=torch.ones(n), init_hidden=True), 1))
    nir.write(HERE / "snntorch.nir", snntorch_to_nir(net, x[0, 0]))
    for part in (net[1], net[3]):
        part.reset_mem()
    return torch.stack([net(step) for step in x])


def with_norse(x):
    parameters = (100.0, 0.0, 1.0, 0.0)  # 1/tau in 1/s, leak, threshold, reset
    net = norse.SequentialState(*layers(lambda n: norse.LIFBoxCell(norse.LIFBoxParameters(*(torch.full((n,), v) for v in parameters))), 10))
    nir.write(HERE / "norse.nir", norse_to_nir(net, x[0, 0]))
    state, out = None, []
    for step in x:
        spikes, state = net(step, state)
        out.append(spikes)
    return torch.stack(out)


def with_spikingjelly(x):
    net = torch.nn.Sequential(*layers(lambda _: neuron.LIFNode(tau=5.0, v_reset=0.0, decay_input=True), 5, bias=False))
    nir.write(HERE / "spikingjelly.nir", spikingjelly_to_nir(net, x[0, :1], dt=1e-4))
    functional.reset_net(net)
    return torch.stack([net(step) for step in x])


def main():
    x = (np.random.default_rng(1).random((STEPS, 2, INPUTS)) < 0.25).astype(np.float32)
    with torch.no_grad():
        makers = {"snntorch": with_snntorch, "norse": with_norse, "spikingjelly": with_spikingjelly}
        answers = {name: make(torch.tensor(x)).numpy() for name, make in makers.items()}
    print({name: int(spikes.sum()) for name, spikes in answers.items()})
    np.savez_compressed(HERE / "answers.npz", x=x.astype(np.uint8), **{name: spikes.astype(np.uint8) for name, spikes in answers.items()})


if __name__ == "__main__":
    main()
