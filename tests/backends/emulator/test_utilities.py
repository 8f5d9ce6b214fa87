"""Smaller parts of the libraries have NumPy's results, for random shapes."""

from itertools import pairwise

import numpy as np
import pytest
from emulated_numbers import as_text, compare_arrays, drawn, joined, results


def run(cases, scenario, inputs, *arguments):
    return results(cases.run("utilities", scenario, *arguments, stdin=as_text(inputs)))


@pytest.mark.parametrize("seed", range(10))
def test_scatter_writes_windows_in_order_and_leaves_out_those_outside(cases, seed):
    rng = np.random.default_rng(seed)
    rank = 1 + seed % 3
    shape = rng.integers(2, 6, rank)
    scattered = rng.permutation(rank)[: rng.integers(1, rank + 1)]
    window = np.array([rng.integers(1, n + 1) for n in shape])
    inserted = [d for d in range(rank) if rng.random() < 0.4]
    window[inserted] = 1
    count = rng.integers(1, 4, rng.integers(0, 3))
    kept = [d for d in range(rank) if d not in inserted]
    update_rank = len(count) + len(kept)
    window_dims = sorted(rng.permutation(update_rank)[: len(kept)].tolist())
    sizes = iter(count)
    update_shape = [window[kept[window_dims.index(d)]] if d in window_dims else next(sizes) for d in range(update_rank)]
    vector_dim = int(rng.integers(0, len(count) + 1))
    # Mostly inside; some begin so late that the window ends outside.
    places = np.stack([rng.integers(0, shape[d] - window[d] + (2 if rng.random() < 0.3 else 1), count) for d in scattered], axis=vector_dim)
    updates, a, b = drawn(rng, *update_shape), drawn(rng, *shape), drawn(rng, *shape)
    found = run(
        cases, "scatter", [a, b, places, updates],
        *joined([shape, places.shape, update_shape]), vector_dim, *joined([window_dims, inserted, scattered]),
    )  # fmt: skip
    others = [d for d in range(update_rank) if d not in window_dims]
    for index in np.ndindex(*count):
        start = np.zeros(rank, int)
        start[scattered] = np.moveaxis(places, vector_dim, -1)[index]
        if (start + window > shape).any():
            continue
        at = [slice(None)] * update_rank
        for d, i in zip(others, index, strict=True):
            at[d] = i
        part = updates[tuple(at)].reshape(window)
        where = tuple(slice(s, s + n) for s, n in zip(start, window, strict=True))
        a[where] = part
        b[where] -= part
    compare_arrays(found, {"written": a, "less": b})


@pytest.mark.parametrize("seed", range(4))
def test_histograms_count_from_a_level_on(cases, seed):
    rng = np.random.default_rng(20 + seed)
    n, count, absolute, half = int(rng.integers(1, 300)), int(rng.integers(1, 6)), seed % 2, seed == 3
    x = rng.integers(-8, 9, n) / np.float32(4)
    levels = np.sort(rng.integers(-8, 9, count) / np.float32(4))
    values = abs(x) if absolute else x
    edges = [-np.inf, *levels, np.inf]
    counts = [((values >= low) & (values < high)).sum() for low, high in pairwise(edges)]
    found = run(cases, "statistics", [x, levels], int(half), n, count, int(absolute))
    compare_arrays(found, {"counts": counts, "twice": 2 * np.array(counts), "floats": counts})


@pytest.mark.parametrize(("size", "adds"), [(1, 2), (3, 2), (4, 7)])
def test_a_circular_buffer_keeps_the_last(cases, size, adds):
    added = [drawn(np.random.default_rng(i), 2, 3) for i in range(adds)]
    found = run(cases, "ring", added, size, adds)
    expected = {f"before{i}": added[adds - 1 - i] if i < adds else np.zeros((2, 3)) for i in range(size)}
    compare_arrays(found, {**expected, "at": adds % size})


@pytest.mark.parametrize("seed", range(8))
def test_triangular_systems_and_factors(cases, seed):
    rng = np.random.default_rng(30 + seed)
    n, k = int(rng.integers(1, 7)), int(rng.integers(1, 4))
    batch = [(), (2,), (2, 3)][seed % 3]
    left, lower, unit = bool(seed & 1), bool(seed & 2), bool(seed & 4)
    a = drawn(rng, *batch, n, n) + 3 * np.eye(n, dtype=np.float32)
    b = drawn(rng, *batch, *((n, k) if left else (k, n)))
    root = drawn(rng, *batch, n, n)
    positive = root @ root.swapaxes(-1, -2) + n * np.eye(n, dtype=np.float32)
    cut = np.tril if lower else np.triu
    matrix = cut(a)
    if unit:
        matrix = cut(a, -1 if lower else 1) + np.eye(n)
    x = np.linalg.solve(matrix, b) if left else np.linalg.solve(matrix.swapaxes(-1, -2), b.swapaxes(-1, -2)).swapaxes(-1, -2)
    factor = np.linalg.cholesky(positive.astype(np.float64))
    expected = {
        "x": x, "mask": matrix, "factor": factor if lower else factor.swapaxes(-1, -2), "kept": b, "spaced": np.linspace(-1, 2, 5),
        "gridX": np.tile(np.linspace(-1, 2, 5), (3, 1)), "gridY": np.repeat(np.linspace(0, 1, 3), 5),
    }  # fmt: skip
    found = run(cases, "triangular", [a, b, positive], *joined([a.shape, b.shape]), int(left), int(lower), int(unit))
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], np.ravel(value), rtol=2e-3, atol=2e-4, err_msg=name)
    assert set(found) == set(expected)


def test_convolutions_into_outputs_and_updates_of_biases(cases):
    rng = np.random.default_rng(50)
    x, kernel, dz = drawn(rng, 2, 3, 5, 4), drawn(rng, 1, 4, 3, 3, 2), drawn(rng, 2, 4, 3, 3)
    scale, biases = np.float32(0.25), drawn(rng, 4)
    out, dk = np.zeros((2, 4, 3, 3)), np.zeros((4, 3, 3, 2))
    for i in range(3):
        for j in range(2):
            window = x[:, :, i : i + 3, j : j + 3]
            out += np.einsum("bchw,oc->bohw", window, kernel[0, :, :, i, j])
            dk[:, :, i, j] = np.einsum("bchw,bohw->oc", window, dz)
    later = biases - 0.5 * dz.sum((0, 2, 3))
    expected = {
        "out": out, "turned": kernel.swapaxes(1, 2)[..., ::-1, ::-1], "biases": later, "biasesLater": later + scale * dz.sum((0, 2, 3)),
        "kernel": kernel[0] + scale * dk,
    }  # fmt: skip
    found = run(cases, "convolutions", [x, kernel, dz, scale, biases])
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], np.ravel(value), rtol=1e-4, atol=1e-4, err_msg=name)
    assert set(found) == set(expected)


def test_accuracy_draws_and_tensors_for_the_host(cases):
    scores = drawn(np.random.default_rng(60), 6, 4)
    labels = scores.argmax(1)
    labels[1] = (labels[1] + 1) % 4
    found = run(cases, "others", [scores, labels])
    assert found["right"] == 5, "counted anew each time"
    logs = np.log(found["logUniform"])
    assert logs.min() >= 0
    assert logs.max() <= np.log(100) + 1e-5
    assert abs(logs.mean() - np.log(10)) < 5 * np.log(100) / np.sqrt(12 * 500)
    rows = found["dropped"].reshape(100, 3)
    assert (rows == rows[:, :1]).all(), "rows are dropped whole"
    assert set(rows[:, 0]) == {0, 2}
    assert found["shapes"].tolist() == [3, 15, 1, 7]


def test_trace_points_take_parts_of_texts_and_metadata(cases):
    found = run(cases, "traces", [])
    assert found["type"] == 2
    assert found["value"] == 3
