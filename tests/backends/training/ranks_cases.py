"""Cases of test_ranks.py, trained by several processes together and by a single process."""

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

import cpu_projects
import cuda_projects
import numpy as np
from nets import join, learnable, linear, recurrent

import snnc
from snnc.backends.session import BackendSession
from snnc.backends.training.updates.masks import masks_of
from snnc.compiler.ir.graph import Graph, Input, Output, Population
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.loss_scale import LossScale
from snnc.compiler.losses.optimizers import SGD, Adam, Optimizer
from snnc.compiler.lowering.lower import lower
from snnc.compiler.neurons.library import LI, LIF, Dropout

SAMPLES, BATCH = 21, 10
"""Two processes take 5 and 5 samples, twice, then 1 and none."""


@dataclass(frozen=True)
class Case:
    make: Callable
    optimizer: Optimizer
    loss: str = "ce_mean_membrane"
    target: str = "cpu"
    fit: dict = field(default_factory=dict)

    def program(self, optimizer=None):
        graph = self.make(np.random.default_rng(3))
        return lower(graph, loss=parse_loss(self.loss), optimizer=optimizer or self.optimizer, loss_output="y")


def dropping(random):
    """A dropout layer between the hidden layer and the readout, another after the input."""
    graph = Graph("dropping")
    graph.add("x", Input((6,), "values"))
    populations = {"first": (Dropout(0.25, seed=3), 6), "hidden": (LIF(0.9), 8), "second": (Dropout(0.5), 8), "readout": (LI(0.9), 4)}
    for name, (model, width) in populations.items():
        graph.add(name, Population(model, (width,)))
    graph.add("y", Output())
    for source, target in (("x", "first"), ("hidden", "second"), ("readout", "y")):
        graph.connect(source, target)
    join(graph, "fc1", linear(random, 8, 6, bias=True, gain=3), "first", "hidden")
    join(graph, "fc2", linear(random, 4, 8, bias=True, gain=3), "second", "readout")
    return graph


def normalised(random, each_step=False):
    """Two batch normalisations after one another, and a dropout layer between them."""
    norm = snnc.BatchNorm(momentum=0.3, each_step=each_step)
    parts = [snnc.Dense(8), norm, snnc.LIF(0.9), snnc.Dropout(0.25, seed=3), snnc.Dense(4), norm, snnc.LI(0.9)]
    return snnc.Sequential(6, *parts, seed=int(random.integers(99)))


CASES = {
    "learned neurons": Case(learnable, Adam(1e-2)),
    "in parts": Case(recurrent, SGD(1e-2, 0.9), "mse_count:0.8,0.1", fit={"accumulate": 2, "batch": 7}),
    "scaled loss": Case(recurrent, SGD(1e-2, 0.9, loss_scale=LossScale(2.0**10, interval=2))),
    "dropout": Case(dropping, SGD(1e-2, 0.9), fit={"accumulate": 2}),
    "on a device": Case(recurrent, Adam(1e-2), target="cuda"),
}
NORMALISED = {
    "normalised": Case(normalised, SGD(1e-2, 0.9)),
    "scaled and normalised": Case(normalised, SGD(1e-2, 0.9, loss_scale=LossScale(2.0**10, interval=2))),
    "normalised at each step": Case(partial(normalised, each_step=True), SGD(1e-2, 0.9), fit={"batch": 7}),
    "normalised in parts": Case(normalised, SGD(1e-2, 0.9), fit={"accumulate": 2, "batch": 7}),
}
"""Cases of networks with batch normalisation."""
ALWAYS = ("scaled and normalised",)
"""Those of them that do not need ``--wide``."""


@contextmanager
def session_of(name, program=None):
    """A session of the case, or of another program."""
    if name in NORMALISED:
        case = NORMALISED[name]
        net = case.make(np.random.default_rng(3))
        with snnc.compile(net, case.target, loss=case.loss, optimizer=case.optimizer, threads=1) as session:
            yield session
        return
    case = CASES[name]
    program = program or case.program()
    opened = cuda_projects.opened(program) if case.target == "cuda" else cpu_projects.opened(program, threads=1)
    with opened as engine:
        engine.drop_by(masks_of(program))
        yield BackendSession(engine, program)


def samples_of(program):
    """Inputs [samples, steps, n] by label, and labels."""
    inputs, y = cpu_projects.data(program, 6, SAMPLES)
    return {info.label: np.moveaxis(inputs[info.id], 1, 0) for info in program.inputs}, y


def fitted(name, disturbed=False, **options):
    """Parameters and moments after two epochs, and the loss of every update; `disturbed`: behind an update of this process alone."""
    with session_of(name) as session:
        x, y = samples_of(session.program)
        if disturbed:
            session.fit(x, y, batch=SAMPLES, distributed=False)
        history = session.fit(x, y, **{"epochs": 2, "batch": BATCH, **(CASES | NORMALISED)[name].fit, **options})
        kept = session.engine.get_optimizer()
        moments = {f"{moment} of {n}": value for moment, values in kept.moments.items() for n, value in values.items()}
        return session.state_dict() | moments | {"updates": np.array(kept.updates)}, np.array(history.batch_losses)
