"""Composed losses for tests: their texts, a network that suits all of them, and targets of every kind."""

import numpy as np
from nets import join, linear

from snnc.backends.runtime.targets import as_targets, target_shape
from snnc.compiler.ir.graph import Graph, Input, Output, Population
from snnc.compiler.ir.shapes import size
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.composed import Composed
from snnc.compiler.losses.optimizers import SGD
from snnc.compiler.lowering.lower import lower
from snnc.compiler.neurons.library import LIF

CLASS_TARGETS = (
    "ce_count:classes=4",
    "ce_last_membrane",
    "ce_last_membrane:classes=3",
    "ce_membrane",
    "ce_first_spike",
    "ce_first_spike:inverse=reciprocal",
    "mse_count:classes=4,on=0.8,off=0.1",
    "mse_rate:on=0.7,off=0.1",
    "mse_mean_membrane:classes=6",
    "mse_max_membrane",
    "mse_last_membrane",
    "mse_first_spike:on=1",
    "mse_membrane:on=1.5,off=0.2",
)
OTHER_TARGETS = (
    "ce_count:lengths",
    "ce_max_membrane:lengths",
    "mse_count:lengths,classes=4",
    "mse_first_spike:lengths",
    "ce_membrane:targets=step_classes,classes=4",
    "mse_membrane:targets=step_classes,on=2",
    "mse_membrane:targets=step_values",
    "mse_mean_membrane:targets=values",
    "mse_last_membrane:targets=values,lengths,classes=2",
    "mse_membrane:targets=values,lengths",
)
SUMS = (
    "ce_count:classes=4 + 0.5*l1_rate:of=hidden + 2*l2_membrane:of=hidden",
    "0.5*ce_count + 0.25*mse_mean_membrane + 3*upper_rate:of=hidden,bound=0.2 + 3*lower_rate:of=hidden,bound=0.6",
    "mse_max_membrane:targets=values + lower_membrane:of=hidden.v,bound=-0.1",
    "ce_first_spike + l1_membrane:of=hidden + upper_membrane:bound=0.3",
)
OWN = (
    "equation[abs(x - y)]:statistic=last,targets=values",
    "equation[log(1 + exp(-(2*y - 1)*x))]:statistic=max",
    "equation[where(gt(abs(x - y), 0.3), abs(x - y), (x - y)*(x - y))]:statistic=steps,targets=step_values",
)
ALL = (*CLASS_TARGETS, *OTHER_TARGETS, *SUMS, *OWN)


def network():
    """Twelve spiking outputs after a recurrent hidden population."""
    random = np.random.default_rng(3)
    graph = Graph("outputs")
    graph.add("x", Input((8,), "spikes"))
    graph.add("hidden", Population(LIF(0.9), (10,)))
    graph.add("out", Population(LIF(0.8), (12,)))
    join(graph, "in", linear(random, 10, 8, gain=3), "x", "hidden")
    join(graph, "loop", linear(random, 10, 10), "hidden", "hidden", delay=1)
    join(graph, "last", linear(random, 12, 10, bias=True, gain=3), "hidden", "out")
    graph.add("y", Output())
    graph.connect("out", "y")
    return graph


def program_of(text, optimizer=None, **options):
    """Return the network with a loss."""
    return lower(network(), loss=parse_loss(text), optimizer=optimizer or SGD(1e-2), **options)


def targets_of(program, random, steps, batch):
    """Return targets of the kind that the program's loss needs; where the loss allows it, some are ignored."""
    loss = program.loss
    output = next(o for o in program.outputs if o.id == program.loss_output)
    if not isinstance(loss, Composed):
        return random.integers(0, size(output.shape), batch)
    shape = (batch, *target_shape(loss, size(output.shape), steps))
    if loss.targets in ("class", "step_classes"):
        found = random.integers(-1 if loss.targets == "step_classes" else 0, loss.width(0), shape)
    else:
        found = random.normal(size=shape)
        found[random.random(shape) < 0.2] = np.nan
    if loss.lengths:
        found[:, -1] = random.integers(1, steps + 1, batch)
    return as_targets(found)


def batches(program, updates, steps=7, batch=4):
    """Return inputs and targets for some updates."""
    for step in range(updates):
        random = np.random.default_rng(step)
        yield {"x0": (random.random((steps, batch, 8)) < 0.4).astype(np.float32)}, targets_of(program, random, steps, batch)
