"""Frameworks for spiking networks, and round trips of their modules through snnc."""

import importlib
import os

import numpy as np
import pytest

import snnc

INPUTS, HIDDEN, CLASSES, STEPS, BATCH = 6, 10, 3, 12, 4


def framework(name):
    """Import a framework; `./test` requires it to be installed."""
    if os.environ.get("SNNC_TEST_FRAMEWORKS"):
        return importlib.import_module(name)
    return pytest.importorskip(name, reason=f"{name} is not installed; ./test installs it without its dependencies")


torch = framework("torch")


def louder(module, factor):
    """Scale weights so that neurons fire."""
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.ndim > 1:
                parameter.mul_(factor)
    return module


def sequences(shape=(INPUTS,), steps=STEPS, batch=BATCH, seed=0):
    return (np.random.default_rng(seed).random((steps, batch, *shape)) < 0.5).astype(np.float32)


def goes_there_and_back(module, run, shape=(INPUTS,), example=None, learns=()):
    """Compare a module with its graph on more steps and samples than the example has, before and after training in snnc.

    `run` takes the module and a sequence, and returns the output of every step. Returns the graph and the written module.
    """
    before = {name: t.clone() for name, t in module.state_dict().items()}
    training = module.training
    graph = snnc.from_torch(module, torch.zeros(5, 1, *shape) if example is None else example, steps=STEPS)
    assert module.training == training
    assert all(torch.equal(t, before[name]) for name, t in module.state_dict().items())
    module.eval()
    x = sequences(shape)
    wanted = run(module, x)
    assert np.ptp(wanted) > 0
    with snnc.compile(graph, loss="ce_mean_membrane", optimizer="adam:0.01", batch=BATCH) as session:
        np.testing.assert_allclose(first(session, x), wanted, atol=1e-4)
        training_data = sequences(shape, batch=2 * BATCH, seed=5).swapaxes(0, 1)
        session.fit(training_data, np.arange(2 * BATCH) % wanted.shape[-1], batch=BATCH)
        written = snnc.to_torch(session, module)
        found, wanted = first(session, x), run(module, x)
    assert set(learns) <= set(written)
    assert all((module.state_dict()[name] != before[name]).any() for name in written)
    np.testing.assert_allclose(found, wanted, atol=1e-4)
    return graph, written


def first(session, x):
    return next(iter(session.run(x).values()))
