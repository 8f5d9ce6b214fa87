"""Views are equivalent to the same NumPy operations, however they are read."""

import random

import numpy as np
import pytest

OPERATIONS = [
    "slice", "slice", "index", "reshape", "reshape", "flatten", "dimShuffle", "dimRoll", "transpose", "expand", "squeeze", "subSample",
    "broadcast", "upsample", "reverse", "concat",
]  # fmt: skip
SHAPES = [(4, 6, 5), (24, 5), (60,), (2, 3, 4, 5)]


def variables():
    """Arrays whose elements are numbered on through all of them."""
    arrays, first = [], 0
    for shape in SHAPES:
        size = int(np.prod(shape))
        arrays.append(np.arange(first, first + size).reshape(shape))
        first += size
    return arrays


def factors(rng, n):
    """Return a random shape of n elements."""
    shape = []
    while n > 1 and rng.random() < 0.8:
        d = rng.choice([d for d in range(2, n + 1) if n % d == 0])
        shape.append(d)
        n //= d
    shape.append(n)
    rng.shuffle(shape)
    return shape


def random_step(rng, stack):
    """Return one operation as text and its result."""
    x = stack[-1]
    d = rng.randrange(x.ndim)
    n = x.shape[d]
    kind = rng.choice(OPERATIONS)
    if kind == "slice":
        a = rng.randrange(n)
        b = rng.randrange(a + 1, n + 1)
        return f"slice {a} {b} {d}", x[(slice(None),) * d + (slice(a, b),)]
    if kind == "index" and x.ndim > 1:
        i = rng.randrange(x.shape[0])
        return f"index {i}", x[i]
    if kind == "reshape":
        shape = factors(rng, x.size)
        return "reshape " + " ".join(map(str, shape)), x.reshape(shape)
    if kind == "flatten":
        a = rng.randrange(x.ndim)
        b = rng.randrange(a + 1, x.ndim + 1)
        return f"flatten {a} {b}", x.reshape(*x.shape[:a], -1, *x.shape[b:])
    if kind == "dimShuffle":
        order = rng.sample(range(x.ndim), x.ndim)
        return "dimShuffle " + " ".join(map(str, order)), x.transpose(order)
    if kind == "dimRoll":
        e = rng.randrange(x.ndim)
        return f"dimRoll {d} {e}", np.moveaxis(x, d, e)
    if kind == "transpose":
        return "transpose", x.T
    if kind == "expand" and x.ndim < 6:
        return f"expand {d}", np.expand_dims(x, d)
    if kind == "squeeze" and n == 1 and x.ndim > 1:
        return f"squeeze {d}", x.squeeze(d)
    if kind == "subSample":
        s = rng.randrange(1, 4)
        return f"subSample {s} {d}", x[(slice(None),) * d + (slice(None, None, s),)]
    if kind == "broadcast" and x.size < 300:
        m = rng.randrange(1, 4)
        return f"broadcast {m} {d}", np.concatenate([x] * m, axis=d)
    if kind == "upsample" and x.size < 300:
        m = rng.randrange(1, 4)
        return f"upsample {m} {d}", np.repeat(x, m, axis=d)
    if kind == "reverse":
        return f"reverse {d}", np.flip(x, d)
    if kind == "concat":
        fits = [i for i, y in enumerate(stack) if y.ndim == x.ndim and y.shape[:d] + y.shape[d + 1 :] == x.shape[:d] + x.shape[d + 1 :]]
        i = rng.choice(fits)
        if stack[i].size + x.size < 1000:
            return f"concat {i} {d}", np.concatenate([stack[i], x], axis=d)
    return random_step(rng, stack)


@pytest.mark.parametrize("seed", range(4))
def test_random_chains_of_views_are_those_of_numpy(cases, seed):
    rng = random.Random(seed)
    arrays = variables()
    script = ["var " + " ".join(map(str, a.shape)) for a in arrays]
    expected = []
    for _ in range(80):
        stack = list(arrays)
        start = rng.randrange(len(arrays))
        script.append(f"pick {start}")
        stack.append(arrays[start])
        for _ in range(rng.randrange(1, 8)):
            text, result = random_step(rng, stack)
            script.append(text)
            stack.append(result)
        script.append("end")
        expected.append(stack[-1])
    lines = cases.run("views", stdin="\n".join(script) + "\n").splitlines()
    for i, array in enumerate(expected):
        shape, *ways = lines[5 * i : 5 * i + 5]
        assert shape.split() == [f"chain{i}", "shape", *map(str, array.shape)]
        for way, text in zip(("view", "copied", "gathered", "scattered"), ways, strict=True):
            assert [int(w) for w in text.split()] == array.ravel().tolist(), f"chain {i}, {way}"
