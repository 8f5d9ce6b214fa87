"""The effect of each option on the emitted files, observed without a build: sessions run on the reference instead of engines."""

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

import snnc
from snnc.backends.backend import BuiltProject, TargetOptions
from snnc.backends.reference.engine import ReferenceEngine
from snnc.backends.registry import BACKENDS
from snnc.driver.compiling import compile_to_folder
from snnc.driver.loading import as_graph
from snnc.options.compile_options import options

CORPUS = Path(__file__).parents[1] / "corpus"
STEPS, BATCH = 6, 4
TARGETS = {
    "reference": "reference",
    "cpu": "cpu",
    "cuda": "cuda",
    "poptorch": "poptorch:one.toml",
    "one": "one.toml",
    "several": "several.toml",
}
"""Columns of the table, and the target that represents each; the last two are machines with one and with several chips."""
MACHINES = {
    "one.toml": 'extends = "gc200"\nname = "one"\ntiles_per_chip = 10\n',
    "several.toml": 'extends = "pod4"\nname = "several"\nchips = 2\ntiles_per_chip = 5\n',
}


def dense():
    net = snnc.Network("net", seed=1)
    x = net.input(12)
    hidden = net.population(20, snnc.LIF(beta=0.9), name="hidden")
    readout = net.population(3, snnc.LI(beta=0.9), name="readout")
    net.connect(x, hidden, snnc.Dense(init=snnc.Normal(std=0.6)))
    net.connect(hidden, readout)
    return net


def sparse():
    net = snnc.Network("net", seed=1)
    x = net.input(12)
    hidden = net.population(40, snnc.LIF(beta=0.9), name="hidden")
    readout = net.population(3, snnc.LI(beta=0.9), name="readout")
    net.connect(x, hidden, snnc.Sparse(density=0.2, seed=1))
    net.connect(hidden, hidden, snnc.Sparse(density=0.1, seed=2), delay=1)
    net.connect(hidden, readout)
    return net


def samples():
    random = np.random.default_rng(1)
    return (random.random((3 * BATCH, STEPS, 12)) < 0.5).astype(np.float32), random.integers(0, 3, 3 * BATCH)


@dataclass
class Opened:
    """The backend options with which an engine was opened."""

    options: list = field(default_factory=list)


@dataclass
class Made:
    """A compiled network: its session (on the reference), the digests of emitted files, and the options of its engine."""

    session: snnc.Session
    files: dict
    opened: TargetOptions | None

    @property
    def plan(self):
        return self.session.plan

    @property
    def program(self):
        return self.session.program

    @cached_property
    def trained(self):
        """Return the updates of an epoch, and the weights after `fit` with the order and the batches that the options set."""
        x, y = samples()
        history = self.session.fit(x, y, epochs=1)
        digest = hashlib.sha256(b"".join(v.tobytes() for _, v in sorted(self.session.state_dict().items()))).hexdigest()
        return len(history.batch_losses[0]), digest


def replace_engines(monkeypatch):
    """Let every target open a reference engine; return the object that records its arguments."""
    opened = Opened()

    def engine_for(backend, placed, options, built):
        opened.options.append(options)
        return ReferenceEngine(placed.placed)

    for backend in BACKENDS:
        if backend.emits:
            monkeypatch.setattr(type(backend), "build", lambda backend, folder, options: BuiltProject(folder, folder))
            monkeypatch.setattr(type(backend), "open", engine_for)
    return opened


def made(opened, target, folder, model=None, **given):
    """Compile as a user does; a separate learning rate is an option of commands only, so it is applied here as they apply it."""
    folder = Path(folder)
    if {"lr", "loss_scale"} & given.keys():
        graph = as_graph(model or dense())
        compile_to_folder(graph, options(TARGETS[target], **given), folder)
        session = snnc.open(folder)
    else:
        session = snnc.compile(model or dense(), TARGETS[target], output=folder, **given)
    files = {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in ("project.json", "options.json")
    }
    return Made(session, files, opened.options[-1] if opened.options else None)
