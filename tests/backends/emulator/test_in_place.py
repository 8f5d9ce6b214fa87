"""Functions of PopLibs that write to tensors of the program, and normalisations composed of their steps, have the results of NumPy."""

import numpy as np
import pytest
from emulated_numbers import as_text, compare_arrays, drawn, results


def run(cases, scenario, inputs, *arguments):
    """Run a scenario on arrays; return its results."""
    return results(cases.run("in_place", scenario, *arguments, stdin=as_text(inputs)))


def in_type(half, *arrays):
    """Return arrays as a program in this type reads them, in double precision."""
    return [a.astype(np.float16 if half else np.float32).astype(np.float64) for a in arrays]


@pytest.mark.parametrize("seed", range(4))
def test_products_write_to_an_output_and_add_to_a_matrix(cases, seed):
    rng = np.random.default_rng(seed)
    half = int(seed == 3)
    g, m, k, n = (int(x) for x in rng.integers(1, 7, 4))
    inputs = drawn(rng, g, m, k), drawn(rng, g, k, n), drawn(rng, g, m, n)
    a, b, c = in_type(half, *inputs)
    expected = {"single": a[0] @ b[0], "grouped": a @ b, "half": c + 0.5 * a @ b, "scaled": c - 2 * a @ b, "turned": a.transpose(0, 2, 1)}
    compare_arrays(run(cases, "products", inputs, half, g, m, k, n), expected, half=bool(half))


@pytest.mark.parametrize("seed", range(4))
def test_rows_are_replaced_and_kept_if_larger(cases, seed):
    rng = np.random.default_rng(seed)
    half = int(seed == 3)
    rows, columns = int(rng.integers(3, 7)), int(rng.integers(1, 5))
    n = int(rng.integers(1, rows + 1))
    inputs = drawn(rng, rows, columns), drawn(rng, n, 1, columns), drawn(rng, 2, rows, columns), drawn(rng, 2, n, 1, columns)
    distinct, repeated, offset = rng.permutation(rows)[:n], rng.integers(0, rows, n), int(rng.integers(rows - 1))
    table, values, grouped, more = in_type(half, *inputs)
    expected = {name: t.copy() for name, t in {"set": table, "max": table, "sets": grouped, "maxima": grouped}.items()}
    expected["set"][distinct] = values[:, 0]
    np.maximum.at(expected["max"], repeated, values[:, 0])
    expected["sets"][:, distinct] = more[:, :, 0]
    expected["maxima"][:, distinct] = np.maximum(grouped[:, distinct], more[:, :, 0])
    expected["slice"] = table[offset : offset + 2]
    found = run(cases, "updates", [*inputs, distinct, repeated, [offset]], half, rows, columns, n)
    compare_arrays(found, expected, half=bool(half))


@pytest.mark.parametrize("seed", range(4))
def test_elements_are_sorted_mapped_and_compared(cases, seed):
    rng = np.random.default_rng(seed)
    half = int(seed == 3)
    m, n = (int(x) for x in rng.integers(2, 8, 2))
    inputs = drawn(rng, m, n), drawn(rng, n), drawn(rng, m, 1)
    text = cases.run("in_place", "elements", half, m, n, stdin=as_text(inputs)).splitlines()
    assert text[0] == f"can: 1 1 {int(m == 0)}"
    x, row, column = in_type(half, *inputs)
    expected = {
        "sorted0": np.sort(x, 0), "sorted1": np.sort(x, 1), "logs": x - np.logaddexp.reduce(x, axis=1, keepdims=True),
        "mapped": np.tanh(2 * x) - row, "argMax": x.argmax(1), "argMin": x.argmin(1), "all": [1], "some": [float((x > 0).all())],
        "row": np.broadcast_to(row, (m, n)), "column": np.broadcast_to(column, (m, n)),
    }  # fmt: skip
    compare_arrays(results("\n".join(text[1:])), expected, half=bool(half))


@pytest.mark.parametrize(("n", "lower"), [(1, 1), (3, 0), (6, 1), (6, 0)])
def test_a_matrix_becomes_its_cholesky_factor(cases, n, lower):
    rng = np.random.default_rng(n)
    square = drawn(rng, 2, n, n)
    a = square @ square.transpose(0, 2, 1) + n * np.eye(n, dtype=np.float32)
    factor = np.linalg.cholesky(a.astype(np.float64))
    found = run(cases, "choleskyInPlace", [a], 2, n, lower)["factor"].reshape(2, n, n)
    np.testing.assert_allclose(found, factor if lower else factor.transpose(0, 2, 1), atol=1e-4)


@pytest.mark.parametrize(("unbiased", "stable"), [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_steps_of_a_normalisation_are_those_of_its_definition(cases, unbiased, stable):
    rng = np.random.default_rng(2 * unbiased + stable)
    shape = [int(x) for x in rng.integers(2, 5, 4)]
    inputs = 1 + drawn(rng, *shape), drawn(rng, *shape), drawn(rng, shape[1]), drawn(rng, shape[1])
    x, dy, gamma, beta = (t.astype(np.float64) for t in inputs)
    dims, size = (0, 2, 3), x.size // shape[1]
    wide = (slice(None), None, None)
    mean = x.mean(dims)
    deviation = 1 / np.sqrt(x.var(dims, ddof=unbiased) + 1e-3)
    whitened = (x - mean[wide]) * deviation[wide]
    inner = dy * gamma[wide]
    dx = deviation[wide] * (inner - inner.mean(dims)[wide] - whitened * (inner * whitened).sum(dims)[wide] / size)
    expected = {
        "mean": mean, "deviation": deviation, "whitened": whitened, "same": whitened, "y": whitened * gamma[wide] + beta[wide],
        "dGamma": (dy * whitened).sum(dims), "dBeta": dy.sum(dims), "dx": dx,
    }  # fmt: skip
    found = run(cases, "normSteps", inputs, unbiased, stable, *shape, ";")
    assert set(found) == set(expected)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], np.ravel(value), atol=2e-5, rtol=2e-4, err_msg=name)


def test_rows_move_by_one_step_and_dropout_follows_its_seed(cases):
    rng = np.random.default_rng(9)
    base, single = drawn(rng, 4, 2, 3), drawn(rng, 1, 2, 3)
    found = run(cases, "stepsAndDropout", [base, single], 4, 2, 3)
    np.testing.assert_array_equal(found["shifted"].astype(np.float32), np.concatenate([single, base[:-1]]).ravel())
    first, same, other = (found[f"kept{i}"] for i in (1, 2, 3))
    np.testing.assert_array_equal(first, same)
    assert (first != other).any()
    for kept in (first, other):
        assert set(kept) == {0, 4}
        assert abs((kept > 0).mean() - 0.75) < 5 * np.sqrt(0.75 * 0.25 / 4000)
