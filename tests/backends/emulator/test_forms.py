"""Other forms of common functions of PopLibs have the results of NumPy."""

import numpy as np
import pytest
from emulated_numbers import as_text, compare_arrays, drawn, joined, results


def run(cases, scenario, inputs, *arguments):
    """Run a scenario on arrays; return its results."""
    return results(cases.run("forms", scenario, *arguments, stdin=as_text(inputs)))


def gathered(x, indices, vector_dim, offset_dims, sizes, collapsed, start_map, remaps):
    """Return the result of XLA's Gather, element by element from its definition; with `remaps`, starts outside become 0."""
    rows = indices[..., None] if vector_dim == indices.ndim else np.moveaxis(indices, vector_dim, -1)
    kept = [d for d in range(x.ndim) if d not in collapsed]
    rank = len(offset_dims) + rows.ndim - 1
    batch_dims = [d for d in range(rank) if d not in offset_dims]
    shape = np.zeros(rank, int)
    shape[batch_dims], shape[offset_dims] = rows.shape[:-1], [sizes[d] for d in kept]
    out = np.zeros(shape, x.dtype)
    for place in np.ndindex(*shape):
        start = np.zeros(x.ndim, int)
        for i, d in enumerate(start_map):
            wanted, most = rows[(*np.array(place)[batch_dims], i)], x.shape[d] - sizes[d]
            start[d] = wanted if wanted <= most else 0 if remaps else most
        start[kept] += np.array(place)[offset_dims]
        out[place] = x[tuple(start)]
    return out


@pytest.mark.parametrize("remaps", [0, 1])
@pytest.mark.parametrize(
    ("shape", "indices", "vector_dim", "offset_dims", "sizes", "collapsed", "start_map"),
    [
        ((5, 4), (3,), 1, [1], [1, 4], [0], [0]),
        ((5, 4), (3, 2), 1, [0, 1], [2, 3], [], [1, 0]),
        ((3, 4, 5), (2, 3, 2), 2, [0, 3], [1, 2, 3], [0], [0, 2]),
        ((4, 6), (1, 3, 2), 0, [2], [1, 3], [0], [1]),
    ],
)
def test_slices_are_gathered_as_xla_does(cases, shape, indices, vector_dim, offset_dims, sizes, collapsed, start_map, remaps):
    rng = np.random.default_rng(len(shape))
    x, rows = drawn(rng, *shape), rng.integers(0, 7, indices)
    lists = joined([shape, indices]), joined([offset_dims, sizes, collapsed, start_map])
    found = run(cases, "gathers", [x, rows], *lists[0], vector_dim, *lists[1], remaps)
    expected = gathered(x, rows, vector_dim, offset_dims, sizes, collapsed, start_map, remaps)
    compare_arrays(found, {"shape": expected.shape, "out": expected})


def test_tensors_are_padded_with_the_element_of_a_tensor(cases):
    t = drawn(np.random.default_rng(0), 2, 3)
    wide = np.full((3, 4), 2.5, np.float32)
    wide[1:, :2] = t[:, 1:]
    one = np.pad(t, ((2, 1), (0, 0)), constant_values=2.5)
    found = run(cases, "pads", [t, [2.5]])
    # The constants without tiles are mapped by the program; three rows of three constants on tile 0 are one run.
    expected = {
        "all": wide, "one": one, "constant": np.pad(t, ((0, 0), (0, 1)), constant_values=7), "tiles": [0, 1, 1],
        "edge": np.pad(t, ((0, 0), (2, 1)), constant_values=7),
    }  # fmt: skip
    compare_arrays(found, expected)


def test_sums_and_differences_with_two_factors(cases):
    rng = np.random.default_rng(1)
    a, b, x, y = drawn(rng, 5), drawn(rng, 5), drawn(rng, 1), drawn(rng, 1)
    made = [0.75 * a + 2 * b, (1 - x) * a + y * b, x * a + y * b, 0.25 * a - 2 * b, x * a - y * b]
    compare_arrays(run(cases, "scaled", [a, b, x, y]), {"made": made})


def test_several_expressions_read_the_tensors_before_any_is_written(cases):
    rng = np.random.default_rng(2)
    a, b = drawn(rng, 4), drawn(rng, 4)
    # mapInPlace changes b before its deviations are computed.
    deviation = (1 / np.sqrt(np.abs(a + b) + 0.5)).astype(np.float16)
    expected = {
        "sum": a + b, "product": a * b, "a": a - b, "b": a + b, "half": 1, "deviation": deviation,
        "variance": deviation.astype(np.float32) ** -2.0 - 0.5,
    }  # fmt: skip
    compare_arrays(run(cases, "several", [a, b]), expected, half=True)


def test_parts_of_tensors_become_zero(cases):
    t, u, v = drawn(np.random.default_rng(3), 3, 8)
    expected = np.stack([t, 0 * u, v])
    expected[0, [1, 2, 6]] = expected[2, [0, 1, 7]] = 0
    compare_arrays(run(cases, "zeros", [t, u, v]), {"made": expected})


def test_rows_are_added_at_known_offsets_and_loops_without_a_visible_counter_read_their_limit(cases):
    rng = np.random.default_rng(4)
    t, s = drawn(rng, 4, 2), drawn(rng, 3, 1, 2)
    after = t.copy()
    for row, change in zip([2, 0, 2], s[:, 0], strict=True):
        after[row] += 0.5 * change
    found = run(cases, "updates", [t, s, [0.5], [10], [0]])
    compare_arrays(found, {"t": after, "shapes": [3, 1, 6, 5], "sum": len(range(2, 10, 3))})


def test_losses_of_scaled_outputs_have_scaled_gradients(cases):
    rng = np.random.default_rng(5)
    chances = rng.dirichlet(np.ones(4), 3).astype(np.float32)
    labels = np.array([2, 0, int(chances[2].argmax())])
    hot = np.eye(4)[labels]
    found = run(cases, "losses", [chances * 8, labels, [3], [8]])
    expected = {"loss": -np.log((chances * hot).sum(1)), "deltas": 3 * (chances - hot), "right": (chances.argmax(1) == labels).sum()}
    compare_arrays(found, expected)


def test_activations_have_short_names_and_run_in_compute_sets(cases):
    x = drawn(np.random.default_rng(6), 6)
    *lines, error = cases.run("forms", "activations", stdin=as_text([x])).splitlines()
    assert error == "poplibs_error: last: a softmax needs several compute sets, so call the form with a program"
    y = np.tanh(x)
    expected = {
        "swish": x / (1 + np.exp(-x)), "softmax": np.exp(x) / np.exp(x).sum(), "tanh": y, "gradient": x * (1 - y * y), "scaling": 1,
    }  # fmt: skip
    compare_arrays(results("\n".join(lines)), expected)


def test_plans_of_convolutions_are_those_of_their_products(cases):
    forward, update = cases.run("forms", "plans").splitlines()
    assert "1 products of 8 x 12 by 12 x 5," in forward
    assert "1 products of 5 x 8 by 8 x 12," in update
