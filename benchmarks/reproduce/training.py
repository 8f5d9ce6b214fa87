"""Train small networks on this CPU for the figures of ``snnc reproduce``, with synthetic pen strokes instead of N-MNIST and MNIST."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

import numpy as np

import snnc
from snnc.benchmarks.reproduce.neuron_models import network
from snnc.benchmarks.strokes import KINDS, SIDE, stroke_images, strokes
from snnc.compiler.ir.graph import Array
from snnc.driver.activity import measure_activity
from snnc.frontends.dsl.sequential import sequential

INPUTS: Final = 2 * SIDE * SIDE
TEST: Final = 480
"""Number of test samples."""
WIDTH: Final = 256
"""Number of neurons of a hidden layer."""
CODE_BATCH: Final = 64
"""Number of samples per update when training on images."""
CURVE_STEPS: Final = 10
"""Number of time steps of a sample in the learning curves."""
EVENT_STEPS, EVENT_BATCH = 20, 48
"""Number of time steps, and number of samples per update, when training on events."""
WIDE, NARROW = -99.0, -0.1
"""Lower end of the gradient window, relative to the threshold, at the start and at the end of the schedule of arXiv 2311.04386."""
PRESSURE: Final = 3.0
"""Factor of the regulariser that bounds firing rates, before it is divided by the bound."""


def train_population_code(steps: int, group: int, seeds: int, samples: int = 960, epochs: int = 10) -> dict[str, Any]:
    """Train a network whose inputs are the constant values of an image, and in which each class has `group` output neurons.

    The score of a class is the number of spikes of its neurons. Return the test ``accuracy`` of each seed, 0 to 1, and ``update_ms``, the
    time of an update, median over epochs, then over seeds.
    """
    x, y = stroke_images(samples, 1)
    test_x, test_y = stroke_images(TEST, 2)
    accuracy, times = [], []
    for seed in range(seeds):
        layers = (snnc.Dense(WIDTH), snnc.LIF(0.9), snnc.Dense(KINDS * group), snnc.LIF(0.9))
        net = sequential(INPUTS, *layers, seed=seed)
        loss = "ce_count" if group == 1 else f"ce_count:classes={KINDS}"
        with snnc.compile(net, "cpu", loss=loss, optimizer=snnc.Adam(1e-3), steps=steps, input_kind="values") as session:
            history = session.fit(_constant(x, steps), y, epochs=epochs, batch=CODE_BATCH, seed=seed)
            times.append(1e3 * statistics.median(history.seconds) / -(-len(y) // CODE_BATCH))
            accuracy.append(session.evaluate(_constant(test_x, steps), test_y))
    return {"accuracy": accuracy, "update_ms": statistics.median(times)}


def train_neuron_model(model: str, seeds: int, samples: int = 960, epochs: int = 10) -> dict[str, Any]:
    """Train a network of a neuron model on images as constant values; return the test ``accuracy`` [seed][epoch], 0 to 1."""
    x, y = stroke_images(samples, 1)
    test_x, test_y = stroke_images(TEST, 2)
    curves = []
    for seed in range(seeds):
        curve: list[float] = []
        net = network(model, seed, inputs=INPUTS, hidden=WIDTH)
        options: dict[str, Any] = {"loss": "ce_count", "optimizer": snnc.Adam(1e-3), "steps": CURVE_STEPS, "input_kind": "values"}
        with snnc.compile(net, "cpu", **options) as session:

            def test(_: object, session: Any = session, curve: list[float] = curve) -> None:
                curve.append(session.evaluate(_constant(test_x, CURVE_STEPS), test_y))

            session.fit(_constant(x, CURVE_STEPS), y, epochs=epochs, batch=CODE_BATCH, seed=seed, on_epoch=test)
        curves.append(curve)
    return {"accuracy": curves}


def train_depth(layers: int, percent: float | None, seeds: int, samples: int = 960, epochs: int = 10) -> dict[str, Any]:
    """Train a network with `layers` hidden layers as arXiv 2311.04386 does; return the test ``accuracy`` of each seed, 0 to 1.

    In a step, at most `percent` % of the neurons of a hidden layer send spikes, a regulariser bounds firing rates to the same share, and
    the gradient window becomes narrower during training (None: none of these).
    """
    x, y = strokes(samples, 1, EVENT_STEPS)
    test_x, test_y = strokes(TEST, 2, EVENT_STEPS)
    names = _hidden(layers)
    accuracy = []
    for seed in range(seeds):
        net = _events_network(layers, seed, x)
        share = None if percent is None else percent / 100
        limits: dict[str, Any] = {}
        if percent is not None:
            limits = {"mode": "drop", "capacity": dict.fromkeys(names, snnc.Share(percent)), "gradient_window": WIDE}
        window = None if percent is None else snnc.schedules.Exponential(WIDE, NARROW)
        with snnc.compile(net, "cpu", **_event_options(names, share), **limits) as session:
            session.fit(x, y, epochs=epochs, batch=EVENT_BATCH, seed=seed, gradient_window=window)
            accuracy.append(session.evaluate(test_x, test_y))
    return {"accuracy": accuracy}


def spikes_over_training(bound: float | None, samples: int = 960, epochs: int = 10) -> dict[str, Any]:
    """Train two hidden layers without a capacity, and count their spikes in a batch of test samples before training and after each epoch.

    Return ``largest`` and ``mean``: for each layer, the largest and mean number of spikes per step and sample, in % of its neurons, and
    ``accuracy``, the test accuracy. All are lists whose first element is before training. ``largest`` is the smallest capacity that drops
    no spike of these samples. Unless `bound` is None, a regulariser bounds the mean firing rates to this fraction.
    """
    x, y = strokes(samples, 1, EVENT_STEPS)
    test_x, test_y = strokes(TEST, 2, EVENT_STEPS)
    names = _hidden(2)
    few = np.ascontiguousarray(test_x[:EVENT_BATCH].swapaxes(0, 1)).astype(np.float32)
    largest: dict[str, list[float]] = {name: [] for name in names}
    mean: dict[str, list[float]] = {name: [] for name in names}
    accuracy: list[float] = []
    with snnc.compile(_events_network(2, 0, x), "cpu", **_event_options(names, bound)) as session:

        def count(_: object = None) -> None:
            for name, counts in _layer_counts(session, few).items():
                if name in largest:
                    largest[name].append(100 * float(counts.max()) / WIDTH)
                    mean[name].append(100 * float(counts.mean()) / WIDTH)
            accuracy.append(session.evaluate(test_x, test_y))

        count()
        session.fit(x, y, epochs=epochs, batch=EVENT_BATCH, seed=0, on_epoch=count)
    return {"largest": largest, "mean": mean, "accuracy": accuracy}


def _layer_counts(session: Any, inputs: Array) -> Mapping[str, Array]:
    """Return the number of spikes of each population in each step and sample [T, B] by name, with the session's weights."""
    program = session.program
    values = session.engine.get_parameters()
    parameters = {name: replace(p, value=values.get(name, p.value)) for name, p in program.parameters.items()}
    trained = replace(program, parameters=parameters)
    counts = measure_activity(trained, {trained.inputs[0].id: inputs}, "test samples").counts
    labels = {p.id: p.label for p in trained.populations}
    return {labels[c.source]: counts[c.source_buffer] for c in trained.connections if c.source in labels and c.source_buffer in counts}


def _hidden(layers: int) -> tuple[str, ...]:
    return tuple(f"hidden{number}" for number in range(1, layers + 1))


def _events_network(layers: int, seed: int, x: Array) -> Any:
    """Return a network of LIF layers (reset to 0) and a leaky readout, whose initial weights make every layer fire at a low rate."""
    net = snnc.Network("sparse", seed=seed)
    populations = [net.input(INPUTS), *(net.population(WIDTH, snnc.LIF(0.95, reset="zero"), name=name) for name in _hidden(layers))]
    populations.append(net.population(KINDS, snnc.LI(0.95), name="readout"))
    for source, target in pairwise(populations):
        net.connect(source, target, snnc.Dense())
    weights = snnc.FluctuationDriven(rate=0.01, xi=2, steps=EVENT_STEPS)
    return snnc.initialise(net, weights, data=x[:EVENT_BATCH].swapaxes(0, 1), seed=seed)


def _event_options(names: tuple[str, ...], bound: float | None) -> dict[str, Any]:
    loss: Any = snnc.losses.CrossEntropy("mean membrane")
    if bound is not None:
        for name in names:
            loss = loss + (PRESSURE / bound) * snnc.losses.Upper(bound, name)
    return {"loss": loss, "optimizer": snnc.Adam(1e-3), "surrogate": "superspike", "steps": EVENT_STEPS}


def _constant(images: Array, steps: int) -> Array:
    return np.repeat(images[:, None], steps, axis=1)
