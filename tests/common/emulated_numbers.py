"""Random inputs of emulated programs as text, and results of these programs as arrays."""

import numpy as np


def results(text):
    """Return the arrays that a program printed: a name, a colon and numbers on each line."""
    lines = (line.split(":") for line in text.splitlines())
    return {name: np.array([float(x) for x in values.split()]) for name, values in lines}


def as_text(arrays):
    """Return arrays as one text, with nine digits per number."""
    return " ".join(f"{x:.9g}" for t in arrays for x in np.ravel(t))


def drawn(rng, *shape, scale=1.0):
    return (scale * rng.standard_normal(shape)).astype(np.float32)


def joined(lists):
    """Return lists as arguments, each terminated by a semicolon."""
    return [x for part in lists for x in [*part, ";"]]


def compare_arrays(found, expected, half=False):
    assert set(found) == set(expected)
    for name, value in expected.items():
        tolerance = {"rtol": 1e-2, "atol": 2e-2} if half else {"rtol": 1e-5, "atol": 1e-5}
        np.testing.assert_allclose(found[name], np.ravel(value), err_msg=name, **tolerance)
