"""Packages for PopTorch that several tests share, emitted and built once per test run."""

import importlib
import sys
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from unittest import mock

import numpy as np
import poplar_projects
from nets import join, linear
from poplar_projects import machine, several_inputs
from windowed_nets import deep

from snnc.backends.poptorch.emit import emit_poptorch
from snnc.backends.poptorch.operation import PopartOperation
from snnc.backends.reference.engine import ReferenceEngine
from snnc.compiler.files.temporary import TemporaryFolder
from snnc.compiler.ir.plan import Plan
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import SGD, Adam, Group
from snnc.compiler.lowering.lower import lower
from snnc.compiler.tiles import make_plan, request_search
from snnc.emulated_poptorch import install

STEPS, BATCH = 12, 5
WIDTHS = (20, 33)
"""Of the hidden layers of chains, which have two: every population lengthens the compilation of the operation."""
GROUPED = SGD(1e-2, 0.5, weight_decay=0.1, groups=(Group("*.bias", weight_decay=0.0), Group("*", lr=0.5)))
CASES = {
    # Values, ids and a static input, further windows, one-to-one links, delays, an output that comes late.
    "several inputs": (several_inputs, Adam(1e-2), machine(3), {}, {"capacity": 1}),
    # Inputs as bits, populations in replicas, gradients that come back in windows.
    "windows": (
        partial(deep, widths=WIDTHS),
        SGD(1e-2, 0.9),
        machine(100),
        {"gradient_window": (-0.3, np.inf)},
        {"gradients": "windowed", "quick": True},
    ),
    # A past, deltas and states of half numbers.
    "half": (several_inputs, Adam(1e-2), machine(3), {"half": ("history", "deltas", "states")}, {"batch": 6}),
    # Rows of weights that are packed before they go to their sources.
    "packed rows": (deep, GROUPED, machine(100), {}, {"gradients": "dense", "packed": True, "quick": True}),
    # Names that would be code, an output that shows an input, states of half numbers; nothing is trained.
    "hostile": (poplar_projects.hostile, None, machine(4), {"half": ("states",)}, {}),
}


def looped(random):
    """A chain whose second layer reads the first one's spikes and is read by it, with frozen weights past it."""
    graph = deep(random, widths=WIDTHS)
    join(graph, "back", linear(random, 20, 33), "h1", "h0", delay=1)
    join(graph, "late", linear(random, 4, 20, learnable=False), "h0", "readout", delay=2)
    return graph


SEVERAL = {"two IPUs": (looped, Adam(1e-2), machine(40, 2), {}, {"chips": 2, "quick": True})}
"""Those that take the tiles of several IPUs."""


@dataclass(frozen=True, eq=False)
class Package:
    program: StepProgram
    plan: Plan
    folder: Path

    @cached_property
    def operation(self):
        return PopartOperation(self.program, self.plan)

    def reference(self):
        return ReferenceEngine(self.program)

    def data(self, seed, density=0.4):
        """Inputs as the reference takes them, and labels."""
        random = np.random.default_rng(seed)
        inputs = {}
        for info in self.program.inputs:
            x = (random.random((STEPS, self.plan.batch, *info.shape)) < density).astype(np.float32)
            if info.kind == "values":
                x *= random.random(x.shape).astype(np.float32)
            inputs[info.id] = np.broadcast_to(x[:1], x.shape).copy() if info.static else x
        loss = [o.shape[0] for o in self.program.outputs if o.id == self.program.loss_output]
        return inputs, random.integers(0, loss[0], self.plan.batch) if loss else None

    def batch_first(self, inputs):
        """The same as the package takes them, in its order."""
        return [(i, inputs[i.id][0] if i.static else np.swapaxes(inputs[i.id], 0, 1).copy()) for i in self.program.inputs]


@contextmanager
def inputs_as_bits():
    """Plans keep a bit for each value of every source of spikes that they may."""

    def chosen(problem):
        sources = (s for s in problem.network.sources if s.kind == "spikes" and s not in problem.windowed)
        return [replace(problem, bits=frozenset(sources))]

    with mock.patch.object(request_search, "with_bits", chosen):
        yield


@lru_cache(maxsize=1)
def workplace():
    return TemporaryFolder(prefix="snnc-poptorch-")


@lru_cache(maxsize=8)
def package(name):
    """Emit a case."""
    make, optimizer, target, lowering, mapping = (CASES | SEVERAL)[name]
    graph = make(np.random.default_rng(3))
    loss = {"loss": parse_loss("ce_mean_membrane"), "loss_output": "y", "optimizer": optimizer} if optimizer else {}
    program = lower(graph, steps=STEPS, **loss, **lowering)
    with inputs_as_bits() if name == "windows" else nullcontext():
        plan = make_plan(program, target, **{"steps": STEPS, "batch": BATCH, **mapping})
    return Package(program, plan, emit_poptorch(program, plan, workplace().path / name.replace(" ", "_")))


@contextmanager
def imported(case, *modules):
    """The emitted modules of a case, with PopTorch emulated; they leave no trace."""
    before, path = dict(sys.modules), list(sys.path)
    try:
        install(case.folder, tiles=case.plan.target.tiles_per_chip)
        sys.path.insert(0, str(case.folder))
        importlib.invalidate_caches()
        yield [importlib.import_module(name) for name in modules]
    finally:
        sys.path[:] = path
        for name in set(sys.modules) - set(before):
            if name == "poptorch" or name == "train" or name.partition(".")[0] == "spiking_network":
                del sys.modules[name]
