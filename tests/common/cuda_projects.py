"""CUDA projects for tests: emitted, built for the CPU (each CUDA thread is a fiber), and compared with the reference."""

import tempfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from indexed_nets import choosing, convolutional, shaping, sparse_recurrent
from nets import delayed, feedback, learnable, of_model, recurrent, skip
from poplar_projects import several_inputs

import snnc
from snnc.backends.cuda.build import build_host_check
from snnc.backends.cuda.emit import emit_cuda
from snnc.backends.cuda.engine import CudaEngine
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import SGD, Adam
from snnc.compiler.lowering.lower import lower
from snnc.compiler.neurons.library import SLSTM
from snnc.driver.loading import as_graph

SPLIT = (1e-5, 1e-4, 2e-5, 1e-4)
"""As ``FLOAT32`` of ``cpu_projects``; gradient products split their factors into two 8-bit parts, so large gradients differ more."""
LOSSES = ("ce_mean_membrane", "ce_rate", "ce_count", "mse_count:0.8,0.1", "ce_max_membrane")
OPTIMIZERS = (Adam(1e-2), SGD(1e-2, 0.9), SGD(1e-2))
NETS = (recurrent, delayed, feedback, learnable, skip, several_inputs, choosing, convolutional, sparse_recurrent, shaping)
ADAM = Adam(1e-2)
CASES = {make.__name__: make for make in NETS} | {"SLSTM": lambda random: of_model(random, SLSTM(0.1))}


def program_of(name):
    """Return a network with its loss and optimiser; tests that use the same combination share the build."""
    at = list(CASES).index(name)
    output = None if name in ("several_inputs", "SLSTM") else "y"
    return lower(CASES[name](np.random.default_rng(3)), loss=parse_loss(LOSSES[at % 5]), optimizer=OPTIMIZERS[at % 3], loss_output=output)


def stacked(*layers, inputs=20, optimizer=ADAM):
    """A program of recurrent layers of these sizes; a negative size is a layer without recurrence."""
    net = snnc.Network("stacked", seed=1)
    before = net.input(inputs)
    for number, size in enumerate(layers, 1):
        hidden = net.population(abs(size), snnc.LIF(0.9), name=f"hidden{number}")
        net.connect(before, hidden, snnc.Dense())
        if size > 0:
            net.connect(hidden, hidden, snnc.Dense(bias=False), delay=1)
        before = hidden
    readout = net.population(5, snnc.LI(0.9), name="readout")
    net.connect(before, readout, snnc.Dense())
    return lower(as_graph(net), loss=parse_loss("ce_mean_membrane"), optimizer=optimizer)


def with_teams(engine, team_blocks, tile):
    """Set the blocks of a team, and the samples for which a block reads each weight once (1 or 8); None leaves a choice to the program."""
    for name, value in (("team_blocks", team_blocks), ("tile", tile)):
        if value is not None:
            engine._setting(name, value)
    return engine


@contextmanager
def opened(program, team_blocks=None, tile=None, precision="float32"):
    """Emit `program`, build it for the CPU and open it."""
    with tempfile.TemporaryDirectory(prefix="snnc-cuda-") as above:
        folder = emit_cuda(program, Path(above) / "project", precision=precision)
        engine = with_teams(CudaEngine(build_host_check(folder), folder), team_blocks, tile)
        yield engine
        engine.close()
