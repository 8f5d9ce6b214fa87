"""Functions of PopLibs that few programs call have the results of NumPy and PyTorch."""

import itertools

import ml_dtypes
import numpy as np
import pytest
from emulated_numbers import as_text, compare_arrays, drawn, results


def run(cases, scenario, inputs, *arguments):
    """Run a scenario on arrays; return its results."""
    return results(cases.run("less_common", scenario, *arguments, stdin=as_text(inputs)))


@pytest.mark.parametrize(("m", "n", "half"), [(1, 1, 0), (4, 4, 0), (7, 3, 0), (20, 20, 0), (5, 4, 1)])
def test_qr_factors_are_orthogonal_and_triangular_and_have_the_matrix_as_product(cases, m, n, half):
    rng = np.random.default_rng(m)
    a = drawn(rng, m, n)
    a[:, n // 2] *= n == 3 or n < 2  # a column of zeros
    found = run(cases, "qr", [a, np.eye(m)], half, m, n)
    q, r = found["q"].reshape(m, m), found["r"].reshape(m, n)
    tolerance = 1e-2 if half else 3e-6
    np.testing.assert_allclose(q @ r, a, atol=tolerance)
    np.testing.assert_allclose(q @ q.T, np.eye(m), atol=tolerance)
    assert np.array_equal(np.triu(r), r)


@pytest.mark.parametrize(("m", "n"), [(1, 3), (4, 4), (6, 3), (3, 6), (12, 12)])
def test_lu_factors_are_triangular_and_have_the_matrix_as_product(cases, m, n):
    a = drawn(np.random.default_rng(n), m, n) + 5 * np.eye(m, n, dtype=np.float32)
    found = run(cases, "lu", [a], m, n)
    lower, upper = found["l"].reshape(m, m), found["u"].reshape(m, n)
    np.testing.assert_allclose(lower @ upper, a, atol=1e-5)
    np.testing.assert_array_equal(found["a"].astype(np.float32), a.ravel())
    assert np.array_equal(np.triu(upper), upper)
    assert np.array_equal(np.tril(lower, -1) + np.eye(m), lower)


def test_factorisations_refuse_what_they_cannot_factor(cases):
    assert "at least as many rows as columns" in cases.run("less_common", "qr", 0, 2, 3)


def transform(rng, size, wanted):
    """Draw truncation, dilation, padding and reversal after which at least `wanted` elements are left."""
    while True:
        cut = rng.integers(0, 2, 2)
        dilation, pad, flip = int(rng.integers(1, 4)), rng.integers(0, 3, 2), int(rng.integers(2))
        left = size - cut.sum()
        total = (left - 1) * dilation + 1 + pad.sum()
        if left > 0 and total >= wanted:
            return [*cut, dilation, *pad, flip], int(total)


def convolution(seed):
    """Draw the arguments of a convolution with every transformation."""
    rng = np.random.default_rng(seed)
    size, kernel = int(rng.integers(4, 8)), int(rng.integers(2, 5))
    ofKernel, taps = transform(rng, kernel, 1)
    ofInput, total = transform(rng, size, taps)
    everything = total - taps + 1
    cut = [int(rng.integers(2)), 0] if everything > 1 else [0, 0]
    stride, pad = int(rng.integers(1, 4)), rng.integers(0, 2, 2)
    groups = 1 + seed % 2
    sizes = [2, size, kernel, 3, 2, groups]
    return rng, sizes, ofInput, ofKernel, [*cut, stride, *pad]


def matrix(sizes, of_input, of_kernel, of_output):
    """Return met[out, tap, in] as 0 or 1, from the definition of the transformations."""

    def transformed(n, t):
        elements = list(range(n))[t[0] : n - t[1]]
        apart = [e for x in elements for e in [x, *[None] * (t[2] - 1)]][: (len(elements) - 1) * t[2] + 1]
        padded = [None] * t[3] + apart + [None] * t[4]
        return padded[::-1] if t[5] else padded

    field, taps = transformed(sizes[1], of_input), transformed(sizes[2], of_kernel)
    rows = [list(zip(taps, field[i : i + len(taps)], strict=True)) for i in range(len(field) - len(taps) + 1)]
    rows = rows[of_output[0] : len(rows) - of_output[1]][:: of_output[2]]
    rows = [[]] * of_output[3] + rows + [[]] * of_output[4]
    met = np.zeros((len(rows), sizes[2], sizes[1]))
    for out, row in enumerate(rows):
        for tap, element in row:
            if tap is not None and element is not None:
                met[out, tap, element] = 1
    return met


@pytest.mark.parametrize("seed", range(12))
def test_gradients_of_convolutions_with_any_transformation_are_convolutions(cases, seed):
    rng, sizes, *transforms = convolution(seed)
    batch, size, taps, channels, outputs, groups = sizes
    met = matrix(sizes, *transforms)
    x, kernel = drawn(rng, batch, groups, channels, size), drawn(rng, groups, outputs, channels, taps)
    dy = drawn(rng, batch, groups, outputs, len(met))
    text = cases.run("less_common", "gradients", *sizes, *itertools.chain(*transforms), stdin=as_text([x, kernel, dy]))
    found = results(text)
    assert list(found.pop("sizes")) == [len(met), size, taps]
    expected = {
        "y": np.einsum("ytx,gokt,bgkx->bgoy", met, kernel, x),
        "dx": np.einsum("ytx,gokt,bgoy->bgkx", met, kernel, dy),
    }
    if groups == 1:
        expected["dk"] = np.einsum("ytx,bgkx,bgoy->gokt", met, x, dy)
    compare_arrays(found, expected)


@pytest.mark.parametrize("seed", range(8))
def test_indices_of_convolutions_are_those_of_the_definition(cases, seed):
    _, sizes, *transforms = convolution(seed)
    met = matrix(sizes, *transforms)
    found = run(cases, "indices", [], *sizes, *itertools.chain(*transforms))
    first = np.where(met.any(2), met.argmax(2), -1)
    assert list(found["met"]) == first.ravel().tolist()

    def hull(flags):
        places = np.flatnonzero(flags)
        return [places[0], places[-1] + 1] if len(places) else [0, 0]

    assert list(found["input"]) == hull(met.any((0, 1)))
    assert list(found["inputOfTap"]) == hull(met[:, 0].any(0))
    assert list(found["kernel"]) == hull(met.any((0, 2)))
    assert list(found["outputOfInput"]) == hull(met[:, :, -1].any(1))
    assert list(found["outputOfTap"]) == hull(met[:, -1].any(1))
    assert found["flops"] == 2 * met.sum() * sizes[0] * sizes[3] * sizes[4] * sizes[5]


@pytest.mark.parametrize("seed", range(4))
def test_a_recurrent_layer_without_gates_and_its_gradients(cases, seed):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(seed)
    steps, batch, size, out = (int(n) for n in rng.integers(1, 6, 4))
    arrays = drawn(rng, steps, batch, size), drawn(rng, batch, out), drawn(rng, out, size), drawn(rng, out, out), drawn(rng, out)
    dy = drawn(rng, steps, batch, out)
    sums = drawn(rng, out, size), drawn(rng, out, out), drawn(rng, out)
    text = cases.run("less_common", "recurrent", steps, batch, size, out, seed % 2, stdin=as_text([*arrays, dy, *sums]))
    found = results(text)
    assert list(found.pop("flops")) == [steps * batch * out * (2 * size + 2 * out + 1), 6]

    def gradients(weights):
        """Return all outputs, and the gradients of the loss with these weights of its terms."""
        x, state, ff, fb, bias = leaves = [torch.tensor(a, dtype=torch.float64, requires_grad=True) for a in arrays]
        outputs = []
        for now in x:
            state = torch.tanh(now @ ff.T + state @ fb.T + bias)
            outputs.append(state)
        y = torch.stack(outputs)
        (y * torch.tensor(weights)).sum().backward()
        return y.detach().numpy(), [leaf.grad.numpy() for leaf in leaves]

    y, (dx, _, dff, dfb, db) = gradients(dy)
    before = np.concatenate([arrays[1][None], y])[steps - 1]
    state = dy[-1] * (1 - y[-1] ** 2)
    expected = {
        "y": y, "dx": dx, "dff": dff, "dfb": dfb, "db": db, "dxLast": state @ arrays[2],
        "sumFf": sums[0] + state.T @ arrays[0][-1], "sumFb": sums[1] + state.T @ before, "sumB": sums[2] + state.sum(0),
    }  # fmt: skip
    compare_arrays(found, expected)


@pytest.mark.parametrize(("fields", "rows", "columns"), [(1, 1, 1), (3, 4, 5), (2, 1, 6)])
def test_spatial_softmax_is_the_expected_place(cases, fields, rows, columns):
    x = drawn(np.random.default_rng(rows), fields, rows, columns)
    chances = np.exp(x / 0.5)
    chances /= chances.sum((1, 2), keepdims=True)
    down = np.linspace(-1, 1, rows) if rows > 1 else np.zeros(1)
    across = np.linspace(-1, 1, columns) if columns > 1 else np.zeros(1)
    places = np.stack([(chances * down[:, None]).sum((1, 2)), (chances * across).sum((1, 2))], 1)
    compare_arrays(run(cases, "spatial", [x], fields, rows, columns), {"places": places, "temperature": 0.5})


@pytest.mark.parametrize("as_bytes", [0, 1])
def test_images_are_scaled_by_channel_and_get_a_fourth_one(cases, as_bytes):
    rng = np.random.default_rng(3)
    image = rng.integers(0, 256, (2, 3, 3)) if as_bytes else drawn(rng, 2, 3, 3)
    offsets, scales = np.array([1.0, 2.0, -3.0]), np.array([0.5, 0.25, 2.0])
    found = run(cases, "image", [image, offsets, scales], as_bytes)
    expected = np.zeros((2, 3, 4))
    expected[..., :3] = (image * 0.125 - offsets) * scales
    compare_arrays(found, {"shape": [4, 1], "out": expected}, half=bool(as_bytes))


@pytest.mark.parametrize("zero", [0, 1])
def test_runs_of_rows_are_copied_to_places_that_are_data(cases, zero):
    rng = np.random.default_rng(zero)
    source, target = drawn(rng, 9, 3), drawn(rng, 12, 3)
    counts, first, to = [3, 2, 4, 0], [1, 7, 5, 0], [4, 0, 8, 0]
    expected = np.zeros_like(target) if zero else target.copy()
    for n, i, o in zip(counts, first, to, strict=True):
        expected[o : o + n] = source[i : i + n]
    compare_arrays(run(cases, "runs", [source, target, counts, first, to], 9, 12, 3, 4, zero), {"out": expected})


def spline(degree, k, v):
    """Return the k-th B-spline that is not zero at v, by the recursion of Cox and de Boor on integer knots."""

    def basis(order, at):
        if order == 0:
            return 1.0 if 0 <= at < 1 else 0.0
        return (at * basis(order - 1, at) + (order + 1 - at) * basis(order - 1, at - 1)) / order

    return basis(degree, v + degree - k)


@pytest.mark.parametrize(("degree", "sizes", "is_open"), [(1, [5], [1]), (1, [4, 3], [0, 1]), (2, [5, 4], [1, 0]), (3, [6], [1])])
def test_splines_and_sums_weighted_by_them(cases, degree, sizes, is_open):
    rng = np.random.default_rng(degree)
    edges, channels, outputs = 6, 3, 2
    pseudo = rng.uniform(0, 0.999, (edges, len(sizes))).astype(np.float32)
    x, weights = drawn(rng, edges, channels), drawn(rng, int(np.prod(sizes)), channels, outputs)
    count = (degree + 1) ** len(sizes)
    basis, index = np.ones((edges, count)), np.zeros((edges, count), int)
    for e, s in np.ndindex(edges, count):
        step, rest = 1, s
        for d, size in enumerate(sizes):
            k, rest = rest % (degree + 1), rest // (degree + 1)
            place = float(pseudo[e, d]) * (size - degree * is_open[d])
            basis[e, s] *= spline(degree, k, place % 1)
            index[e, s] += (int(place) + k) % size * step
            step *= size
    out = np.einsum("es,ei,esio->eo", basis, x, weights[index])
    found = run(cases, "splines", [pseudo, sizes, is_open, x, weights], edges, len(sizes), len(weights), channels, outputs, degree)
    compare_arrays(found, {"basis": basis, "index": index, "out": out})


def test_rows_of_sparse_matrices_are_read_and_updated_where_they_have_values(cases):
    rng = np.random.default_rng(0)
    places = [0, 3, 8, 11, 20, 21, 40, 47]
    dense = np.zeros(48)
    dense[places] = np.array(places) + 1
    dense = dense.reshape(8, 6)
    rows, slices, scale = [1, 0, 7, 1, 5], drawn(rng, 5, 6), 0.5
    after = dense.copy()
    for row, values in zip(rows, slices, strict=True):
        after[row] += scale * values * (dense[row] != 0)
    found = run(cases, "embedding", [rows, slices, [scale]], 5, *places, ";")
    compare_arrays(found, {"before": dense[rows], "after": after[rows]})


@pytest.mark.parametrize("half", [0, 1])
def test_rows_are_multiplied_at_their_offsets(cases, half):
    rng = np.random.default_rng(half)
    t, s, t2, s2 = drawn(rng, 5, 3), drawn(rng, 4, 1, 3), drawn(rng, 2, 5, 3), drawn(rng, 2, 4, 1, 3)
    places = rng.integers(0, 5, (3, 4))
    expected = np.concatenate([t[None], t2]).astype(float)
    for table, change, rows in zip(expected, [s, *s2], places, strict=True):
        for row, values in zip(rows, change, strict=True):
            table[row] *= values[0]
    found = run(cases, "slices", [t, s, t2, s2, *places], half)
    compare_arrays(found, {"mul": expected[0], "grouped": expected[1:], "shape": [4, 4, 3, 1, 2]}, half=bool(half))


def samples_of(image, corners, params):
    """Return the weights of an image's pixels in each part of a region, sample by sample: [rows, columns, height, width]."""
    aligned, samples, rows, columns, quarters = params
    height, width = image.shape[1:]
    x, y, x_end, y_end = corners * quarters / 4 - (0.5 if aligned else 0)
    size_y, size_x = (max(end - begin, 0 if aligned else 1) for begin, end in ((y, y_end), (x, x_end)))
    weights = np.zeros((rows, columns, height, width))
    for row, column, i, j in np.ndindex(rows, columns, samples, samples):
        at = np.array([y + size_y * (row + (i + 0.5) / samples) / rows, x + size_x * (column + (j + 0.5) / samples) / columns])
        if (at < -1).any() or at[0] > height or at[1] > width:
            continue
        at = np.clip(at, 0, [height - 1, width - 1])
        low = at.astype(int)
        high = np.minimum(low + 1, [height - 1, width - 1])
        part = at - low
        for corner in itertools.product((0, 1), repeat=2):
            place = np.where(corner, high, low)
            weights[row, column, *place] += np.prod(np.where(corner, part, 1 - part)) / samples**2
    return weights


@pytest.mark.parametrize("seed", range(8))
def test_regions_are_means_of_bilinear_samples_and_gradients_their_transposes(cases, seed):
    rng = np.random.default_rng(seed)
    half = int(seed == 7)
    params = [seed % 2, *rng.integers(1, 4, 3), int(rng.integers(2, 6))]  # aligned, samples, rows, columns, four times the scale
    images, channels, height, width = rng.integers(1, 4), rng.integers(1, 4), *rng.integers(1, 9, 2)
    n = int(rng.integers(1, 5))
    data, gradient = drawn(rng, images, channels, height, width), drawn(rng, n, channels, *params[2:4])
    corners = rng.integers(-12, 44, (n, 4)) / np.float32(4)  # some reach outside, some are empty or reversed
    corners[::2, 2:] = corners[::2, :2] + abs(corners[::2, 2:])
    own = rng.integers(0, images, n)
    expected, back = np.zeros(gradient.shape), np.zeros(data.shape)
    for i in range(n):
        weights = samples_of(data[own[i]], corners[i].astype(float), params)
        expected[i] = np.einsum("chw,yxhw->cyx", data[own[i]], weights)
        back[own[i]] += np.einsum("cyx,yxhw->chw", gradient[i], weights)
    found = run(cases, "regions", [data, corners, own, gradient], half, *params, *data.shape, ";", n)
    compare_arrays(found, {"out": expected, "gradient": back}, half=bool(half))


@pytest.mark.parametrize("seed", range(7))
def test_rows_of_blocks_have_the_softmax_of_their_dense_rows(cases, seed):
    rng = np.random.default_rng(seed)
    half, mask, groups = int(seed == 6), seed % 3, 1 + seed % 2
    block = rng.integers(1, 4, 2)
    blocks = np.array([groups * rng.integers(1, 4), rng.integers(1, 5)])
    sparsity = rng.integers(0, 2, blocks)
    sparsity[0, 0] = 1
    size = block * blocks
    whole = np.kron(sparsity, np.ones(block)) == 1
    row, column = np.indices(size)
    row %= size[0] // groups
    kept = whole & [True, column <= row, column >= row][mask]

    def as_blocks(matrix):
        parts = matrix.reshape(blocks[0], block[0], blocks[1], block[1]).transpose(0, 2, 1, 3)
        return parts[sparsity == 1]

    x, gradient = 4 * drawn(rng, *size), drawn(rng, *size)
    powers = np.where(kept, np.exp(x.astype(float)), 0)
    y = powers / np.maximum(powers.sum(1, keepdims=True), 1e-300)
    back = y * (gradient - (y * gradient).sum(1, keepdims=True))
    found = run(
        cases, "blockSoftmax", [as_blocks(x), as_blocks(gradient)], half, mask, groups, *size, *block, *sparsity.ravel(), ";"
    )  # fmt: skip
    expected = {"softmax": as_blocks(y), "gradient": as_blocks(back), "inPlace": as_blocks(y)}
    compare_arrays(found, expected, half=bool(half))


def test_reductions_over_more_tiles_than_one_can_receive_from_have_three_stages(cases):
    rng = np.random.default_rng(5)
    t, out = drawn(rng, 2, 3100), drawn(rng, 2)
    t[0] = np.minimum(t[0], 3.25)
    t[1, 1700] = 4
    exact = t.astype(np.float64)
    found = run(cases, "manyTiles", [t, out], 3100)
    np.testing.assert_allclose(found["sum"], exact.sum(1), atol=1e-3)
    np.testing.assert_allclose(found["squares"], (exact**2).sum(1), rtol=1e-5)
    np.testing.assert_allclose(found["log"], np.logaddexp.reduce(exact, axis=1), rtol=1e-5)
    np.testing.assert_allclose(found["updated"], out + 0.5 * exact.sum(1), atol=1e-3)
    assert found["any"].tolist() == [0, 1]
    # 36 bytes for each of about sqrt(2944) partial sums, not for each of 2944
    assert int(cases.run("less_common", "codeToReceive")) <= 2 * 36 * 55


@pytest.mark.parametrize("seed", range(6))
def test_quarters_are_cast_in_a_compute_set_of_the_program(cases, seed):
    rng = np.random.default_rng(seed)
    half, wide = seed % 2, seed // 2 % 2
    scale = int(rng.integers(-3, 1 if half else 4))  # results fit into a half
    x = drawn(rng, 40, scale=float(rng.choice([0.01, 1, 1000]))).astype(np.float16 if half else np.float32)
    x[:2] = 0, 60000
    form = ml_dtypes.float8_e5m2fnuz if wide else ml_dtypes.float8_e4m3fnuz
    largest = float(ml_dtypes.finfo(form).max)
    expected = np.clip(x.astype(np.float64) * 2.0**-scale, -largest, largest).astype(form)
    found = run(cases, "quarters", [x], half, wide, scale + 3, 40)
    assert found["bits"].astype(np.uint8).tolist() == expected.view(np.uint8).tolist()
    np.testing.assert_allclose(found["back"], expected.astype(np.float64) * 2.0**scale, rtol=1e-8)  # printed with nine digits


def test_a_cast_to_half_is_accurate_within_a_part_of_the_value(cases):
    values = np.array([0.1, 1e5, 0.5, 0, 1e-7], np.float32)
    printed = cases.run("less_common", "accuracy", stdin=as_text([values])).splitlines()
    with np.errstate(over="ignore"):
        error = abs(values.astype(np.float16).astype(np.float64) - values)
    assert [line.split()[1] for line in printed[:5]] == [str(int(ok)) for ok in error <= 1e-4 * abs(values)]
    assert "a tensor of shape {5} is not one number" in printed[5]


def test_operations_plans_and_options_have_their_documented_names(cases):
    assert cases.run("less_common", "names").splitlines() == [
        "GELU_ERF SHIFT_LEFT SELECT", "Square Add Reduce<float,popops::Operation::LOG_ADD>", "1000", "TRAINING_FWD 4 5 6",
        "TRAINING_BWD 4 6 5", "TRAINING_WU 5 4 6", "2 convolutions", "2.5e+09112", "poplar::invalid_option: convolution: no option 'parts'",
    ]  # fmt: skip
