"""Compare the predicted cycles of a training step of small networks with those that the emulator counts for the same plan."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np

from snnc.backends.poplar.emit import emit_poplar
from snnc.backends.poplar.engine import open_engine
from snnc.benchmarks.published_nets import DECAY, dense_lif
from snnc.compiler.files.temporary import temporary_folder
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import Adam
from snnc.compiler.lowering.lower import lower
from snnc.compiler.machines import load_target
from snnc.compiler.neurons.library import LI, LIF
from snnc.compiler.tiles import make_plan
from snnc.driver.activity import measure_activity
from snnc.frontends.dsl.connections import Dense
from snnc.frontends.dsl.initialisers import Normal
from snnc.frontends.dsl.network import Network

STEPS: Final = 20
BATCH: Final = 12
CLASSES: Final = 10
WIDTHS: Final = (200, 96, 96)
"""Number of inputs, and number of neurons of each hidden layer."""
TILES: Final = 48
"""Number of tiles per chip."""
GAIN: Final = 3.0
"""Standard deviation of the weights times the root of the fan-in; large enough for hidden layers to fire."""


def emulate_small(activity: float, *, dense: bool, chips: int = 1) -> dict[str, Any]:
    """Plan and emit a small network and emulate two training steps at learning rate 0; return predicted and emulated cycles and bytes.

    `activity` is the probability that an input is 1 in a step. With `dense`, inputs and hidden layers send values instead of events, as
    in a dense framework. The emulated cycles are those of the second training step.
    """
    program = _program(dense=dense)
    machine = load_target("gc200" if chips == 1 else "pod4")
    machine = replace(machine, name=f"{TILES} tiles x {chips}", tiles_per_chip=TILES, chips=chips)
    random = np.random.default_rng(0)
    inputs = {i.id: (random.random((STEPS, BATCH, *i.shape)) < activity).astype(np.float32) for i in program.inputs}
    activity_counts = measure_activity(program, inputs, "the same inputs")
    plan = make_plan(program, machine, steps=STEPS, batch=BATCH, activity=activity_counts.mean, **activity_counts.measured)
    labels = random.integers(0, CLASSES, BATCH)
    with temporary_folder() as folder:
        engine = open_engine(emit_poplar(program, plan, Path(folder) / "project"))
        for _ in range(2):
            engine.train_batch(inputs, labels, 0.0)
        counted = engine.profile()["emulator"]
    return {
        "target": machine.name,
        "batch": BATCH,
        "steps": STEPS,
        "realised_activity": activity_counts.mean,
        "predicted_cycles": plan.cycles,
        "emulated_cycles": counted["cycles_last_run"],
        "predicted_bytes": max(plan.tile_memory),
        "emulated_bytes": max(counted["per_tile"]["peak"]["total"]),
    }


def _program(*, dense: bool) -> StepProgram:
    net = Network("small", seed=1)
    last = net.input(WIDTHS[0], "values" if dense else "spikes", name="input")
    for number, (before, width) in enumerate(pairwise(WIDTHS), 1):
        layer = net.population(width, dense_lif() if dense else LIF(beta=DECAY, reset="zero"), name=f"hidden{number}")
        net.connect(last, layer, Dense(bias=False, init=Normal(GAIN / math.sqrt(before))), delay=int(number > 1))
        last = layer
    readout = net.population(CLASSES, LI(beta=DECAY), name="readout")
    net.connect(last, readout, Dense(bias=False), delay=1)
    return lower(net.graph(), loss=parse_loss("ce_mean_membrane"), optimizer=Adam(1e-3), steps=STEPS)
