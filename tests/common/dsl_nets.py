"""Helpers that tests of the DSL share."""

import numpy as np

import snnc


def relay():
    """Return a neuron whose output is its input."""
    return snnc.Neuron("relay", inputs="i", states={}, params={}, equations="y = i", output="y")


def run(net, x):
    """Run [T, B, ...] through the reference; return the only output."""
    with snnc.compile(net) as session:
        (found,) = session.run(np.asarray(x, np.float32)).values()
    return found


def values(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def delayed(weight, bias, delays, extra, x):
    """Return the current of a connection with one delay per weight, computed weight by weight."""
    found = np.zeros((*x.shape[:2], len(weight)))
    for t in range(len(x)):
        for row, column in np.argwhere(np.ones_like(weight)):
            late = t - delays[row, column] - extra
            if late >= 0:
                found[t, :, row] += weight[row, column] * x[late, :, column]
    return found + bias
