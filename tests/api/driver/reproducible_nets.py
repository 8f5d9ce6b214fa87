"""Run by a test in a separate process: prints a digest of the emitted sources and plans of three networks."""

import hashlib
import json
import tempfile
from pathlib import Path

import snnc
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import Adam
from snnc.compiler.neurons.surrogates.library import parse_surrogate
from snnc.driver.compiling import compile_to_folder
from snnc.driver.loading import as_graph
from snnc.options.compile_options import CompileOptions

ADAPTIVE = {
    "states": {"v": 0, "b": 0},
    "params": {"beta": 0.9, "rho": 0.97, "kappa": 1.8},
    "equations": """
        z = spike(v - 1 - kappa*b)
        b = rho*b + (1 - rho)*z
        v = beta*v + tanh(i)/(1 + 3*i*i) - detach(z)
        s = spike(v - 1 - kappa*b)
    """,
}


def network(kind):
    net = snnc.Network(kind, seed=5)
    x = net.input((2, 8, 8) if kind == "convolutional" else 30)
    neuron = snnc.Neuron("adaptive", inputs="i", output="s", **ADAPTIVE) if kind == "adaptive" else snnc.LIF(beta=0.9)
    connection = snnc.Dense()
    if kind == "convolutional":
        connection = snnc.Conv(4, 3)
        hidden = net.population(net.shape_after(x, connection), neuron, name="hidden")
    else:
        hidden = net.population(40, neuron, name="hidden")
        net.connect(hidden, hidden, snnc.Sparse(density=0.2, init=snnc.Normal(0.1)), delay=1)
    readout = net.population(5, snnc.LI(beta=0.9), name="readout")
    net.connect(x, hidden, connection)
    net.connect(hidden, readout, snnc.Dense(5))
    return net


OPTIONS = {
    "steps": 6,
    "batch": 4,
    "loss": parse_loss("ce_mean_membrane"),
    "optimizer": Adam(1e-3),
    "surrogate": parse_surrogate("fast_sigmoid:25"),
}

for kind in ("recurrent", "adaptive", "convolutional"):
    for target in ("cpu", "gc200"):
        with tempfile.TemporaryDirectory() as above:
            folder = Path(above) / "project"
            compile_to_folder(as_graph(network(kind)), CompileOptions(target=target, **OPTIONS), folder)
            total = hashlib.sha256()
            for path in sorted(folder.rglob("*")):
                if path.is_file():
                    total.update(str(path.relative_to(folder)).encode() + path.read_bytes())
            print(json.dumps([kind, target, total.hexdigest()]), flush=True)
