"""Operations of PopLibs have NumPy's results, the required tile mapping, and the costs of the published rules."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st


def wave(shape, seed, dtype=np.float32):
    i = np.arange(math.prod(shape))
    return (((i * 37 + seed * 17 + 11) % 101 - 50) / np.float32(8)).astype(np.float32).reshape(shape).astype(dtype)


def results(text):
    lines = (line.split(":") for line in text.splitlines())
    return {name: np.array([float(x) for x in values.split()]) for name, values in lines}


def check(found, expected, rtol=2e-6, atol=1e-6):
    assert set(found) == set(expected)
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], np.ravel(np.asarray(values, float)), rtol=rtol, atol=atol, err_msg=name)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def test_element_wise_operations_and_expressions_with_broadcasts_in_place_and_with_outputs(cases):
    a, b, row, one = wave((3, 5), 0), wave((3, 5), 1), wave((5,), 2), wave((1,), 3)
    added = a - np.float32(0.5) * b + one * b
    square = b[:, :3]
    expected = {
        "add": a + b, "row": a * row, "one": a - one, "number": 2 / a, "turned": a.reshape(5, 3).T + b, "gt": a > b,
        "select": np.where(a < 0, a, b), "clamp": np.clip(a, -1, 2.5), "tanh": np.tanh(a), "floor": np.floor(a),
        "expression": a * 0.5 + 1 / (1 + np.exp(-(b - 1))), "inPlace": (a + b) ** 2 / 4, "ownTranspose": square - square.T,
        "max": np.maximum(a, b), "scaledAdd": added, "filled": np.stack([added[0], 0 * a[0], 0 * a[0] + 3]),
    }  # fmt: skip
    check(results(cases.run("poplibs", "elementwise")), expected)


def test_integers_wrap_and_divide_as_32_bit_words_do(cases):
    a, b = np.int32([7, -7, 12, 1 << 30, -1]), np.int32([3, 3, -5, 4, 1])
    raw = a.view(np.uint32)
    expected = {
        "div": np.trunc(a / b), "rem": np.fmod(a, b), "mul": a * b, "shr": raw >> 28, "shrse": a >> 1, "and": a & b,
        "popcount": [int(x).bit_count() for x in raw], "clz": [32 - int(x).bit_length() for x in raw],
    }  # fmt: skip
    check(results(cases.run("poplibs", "integers")), expected)


def test_halves_round_after_every_operation_and_are_summed_in_float(cases):
    a, b = wave((9,), 0, np.float16), wave((9,), 1, np.float16)
    expected = {"fused": a * b + np.float16(0.1), "sum": np.float16(a.astype(np.float32).sum())}
    # Printed with nine digits.
    check(results(cases.run("poplibs", "halves")), expected, rtol=1e-8, atol=0)


def test_reductions_over_any_dimensions_with_scale_update_and_several_at_once(cases):
    t, scale = wave((4, 5, 6), 0), wave((1,), 1)
    expected = {
        "all": t.sum(), "last": t.max(2), "first": t.min(0), "outer": (t * t).sum((0, 2)), "update": 10 + scale * t.sum((0, 2)),
        "many0": t.sum(1), "many1": t.max((0, 1)), "any": (t > 6).any((1, 2)),
    }  # fmt: skip
    check(results(cases.run("poplibs", "reductions")), expected, atol=1e-4)


@pytest.mark.parametrize("shape", [(1, 1, 1), (5, 7, 6), (2, 64, 3), (33, 4, 17)])
@pytest.mark.parametrize("tiles", [1, 7, 40])
def test_products_of_matrices(cases, shape, tiles):
    m, k, n = shape
    a, b, c = wave((m, k), 0), wave((k, n), 1), wave((m, n), 2)
    expected = {
        "product": a @ b, "half": a @ b, "acc": c + 0.5 * (a @ b), "grouped": wave((2, m, k), 3) @ wave((2, k, n), 4), "vector": a @ b[:, 0]
    }  # fmt: skip
    # Eighths up to 6.25 are exact in half, and so are sums of their products in float.
    check(results(cases.run("poplibs", "products", m, k, n, tiles)), expected, atol=1e-4)


def test_slices_updates_and_gathers(cases):
    t, s, m, scale = wave((6, 4, 3), 0), wave((1, 2, 3), 1), wave((3, 1, 4, 3), 2), wave((1,), 3)
    update, added = t.copy(), t.copy()
    update[5:6, 2:4] = s
    for i, row in enumerate((2, 0, 2)):
        added[row] += scale * m[i, 0]
    points, points_added, less = np.empty((3, 6, 1, 1), np.float32), t.copy(), t.reshape(6, 12).copy()
    for i, (k, j) in enumerate(((2, 3), (0, 1), (2, 3))):
        points[i, :, 0, 0] = t[:, j, k]
        points_added[:, j, k] += scale * t[:, j, k]
    columns = {0: 3, 1: 11, 2: 0, 5: 5}  # of the other rows none is meant
    scalars = [less[row, columns[row]] if row in columns else 0 for row in range(6)]
    for row, column in columns.items():
        less[row, column] -= 1
    expected = {
        "slice": t[4:6], "round": t[[5, 0]], "two": t[5:6, 2:4], "update": update, "multi": t[[2, 0, 2]], "gather": t[:, [2, 0, 2]],
        "updateAdd": added, "points": points, "pointsAdd": points_added, "scalars": scalars, "scalarsLess": less,
        "transposed": t.swapaxes(1, 2),
    }  # fmt: skip
    check(results(cases.run("poplibs", "slices")), expected)


def test_a_counted_loop_gives_its_counter_to_the_body(cases):
    check(results(cases.run("poplibs", "loops")), {"sum": 2 + 5 + 8, "rounds": 4})


def test_losses_non_linearities_their_gradients_and_encodings(cases):
    x, labels = wave((3, 4), 0), [1, 0, 3]
    y, hot = softmax(x), np.eye(4)[labels]
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    slope = math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * x**2)
    gelu = 0.5 * (1 + np.tanh(inner)) + 0.5 * x * (1 - np.tanh(inner) ** 2) * slope
    order = np.argsort(-x, axis=1, kind="stable")[:, :2]
    expected = {
        "softmax": y, "logSoftmax": 40 * x - np.logaddexp.reduce(40.0 * x, axis=1, keepdims=True),
        "loss": -np.log(y[np.arange(3), labels]), "delta": y - hot, "right": 5 + (y.argmax(1) == labels).sum(),
        "softmaxGradient": y * (x - (x * y).sum(1, keepdims=True)), "geluGradient": y * gelu,
        "top": np.take_along_axis(x, order, 1), "topAt": order, "hot": hot, "iota": np.arange(-2, 3),
        "best": np.take_along_axis(x, order, 1), "bestAt": order, "most": np.append(x.max(1), x.min(1)),
        "mostAt": np.append(x.argmax(1), x.argmin(1)), "found": [0, 1, 1, 0],
    }  # fmt: skip
    check(results(cases.run("poplibs", "networks")), expected, rtol=2e-5, atol=2e-6)


def transformed(x, axis, cut, step, pad, flip):
    x = np.moveaxis(x, axis, 0)
    x = x[cut[0] : len(x) - cut[1]]
    apart = np.zeros(((len(x) - 1) * step + 1, *x.shape[1:]))
    apart[::step] = x
    x = np.pad(apart, [pad] + [(0, 0)] * (x.ndim - 1))
    return np.moveaxis(x[::-1] if flip else x, 0, axis)


def correlated(x, k, out):
    """Correlate [n, groups, in, h, w] with [groups, out, in, h, w]; then cut, take every n-th and pad: (cut, step, pad) a dimension."""
    size = [x.shape[3 + d] - k.shape[3 + d] + 1 for d in (0, 1)]
    y = np.zeros((len(x), x.shape[1], k.shape[1], *size))
    for i in range(size[0]):
        for j in range(size[1]):
            window = x[:, :, :, i : i + k.shape[3], j : j + k.shape[4]]
            y[..., i, j] = np.einsum("ngchw,gochw->ngo", window, k)
    for axis, (cut, step, pad) in enumerate(out, 3):
        y = np.moveaxis(y, axis, 0)
        y = np.pad(y[cut[0] : len(y) - cut[1]][::step], [pad] + [(0, 0)] * 4)
        y = np.moveaxis(y, 0, axis)
    return y


def test_convolutions_with_every_transform_their_weight_gradients_and_the_pass_back(cases):
    out = [((1, 0), 1, (0, 1)), ((0, 1), 2, (1, 0))]

    def convolved(x, k):
        x = transformed(transformed(x.reshape(2, 2, 2, 5, 6), 3, (0, 1), 2, (1, 0), False), 4, (1, 0), 1, (2, 1), True)
        k = transformed(k, 3, (0, 0), 2, (0, 1), True)
        return correlated(x, k, out)

    x, k = wave((2, 4, 5, 6), 0), wave((2, 3, 2, 2, 3), 1)
    y = convolved(x, k)
    z = wave((2, 6, *y.shape[3:]), 2).reshape(y.shape)
    units = np.eye(k.size).reshape(-1, *k.shape)
    weights = [np.sum(convolved(x, unit) * z) for unit in units]
    plain, biases, inner = wave((1, 3, 2, 3, 3), 3), wave((3,), 4), wave((1, 1, 2, 4, 4), 5)
    none = [((0, 0), 1, (0, 0))] * 2
    forward = correlated(inner, plain, none) + biases[:, None, None]
    padded = np.pad(forward, [(0, 0)] * 3 + [(2, 2)] * 2)
    back = correlated(padded, plain.transpose(0, 2, 1, 3, 4)[..., ::-1, ::-1], none)
    check(
        results(cases.run("poplibs", "convolutions")), {"y": y, "weights": weights, "forward": forward, "back": back}, rtol=1e-5, atol=1e-3
    )


def test_random_tensors_have_their_distributions_and_repeat_by_seed(cases):
    found = results(cases.run("poplibs", "randoms"))
    uniform, normal = found["uniform"], found["normal"]
    assert (found["again"] == uniform).all()
    assert (found["other"] != uniform).mean() > 0.99
    assert uniform.min() >= -2
    assert uniform.max() < 3
    # Five standard errors of 4000 draws.
    assert abs(uniform.mean() - 0.5) < 5 * (5 / math.sqrt(12)) / math.sqrt(4000)
    assert abs(normal.mean() - 1) < 5 * 2 / math.sqrt(4000)
    assert abs(normal.std() - 2) < 5 * 2 / math.sqrt(8000)
    assert abs(found["truncated"]).max() <= 1.5
    assert set(found["bernoulli"]) == {0, 1}
    assert abs(found["bernoulli"].mean() - 0.25) < 5 * math.sqrt(0.25 * 0.75 / 4000)


def shared(worker_cycles):
    """Return tile cycles: six workers and the supervisor."""
    return 6 * worker_cycles + 11


def loop(n, cycles, elements, prologue):
    """Return tile cycles of `n` elements shared among six workers in vectors of 8 bytes."""
    vector = 4 if prologue == 26 else 2 if elements > 1 else 1
    share = math.ceil(math.ceil(n / vector) / 6) * vector
    return shared(prologue + math.ceil(share / elements) * cycles)


def slice_cycles(n, slices):
    return max(403, 25 + 6 * (39 + (24 + 2 * (math.ceil(n / 6) // 2)) * slices))


def test_cycles_are_those_of_the_published_rules(cases):
    def of_type(prologue, width, exp, tanh, sigmoid):
        loops = [(3, width), (2, width), exp, tanh, sigmoid, (10, 2), (14, 4)]
        return [loop(1000, cycles, elements, prologue) for cycles, elements in loops]

    floats = of_type(29, 2, (6, 2), (12, 2), (12, 2))
    halves = of_type(26, 4, (4, 4), (4, 4), (6, 4))
    others = [loop(13, 10, 2, 29), loop(7, 3, 2, 29)]
    integers = [shared(29 + 18 * 7), shared(29 + 18 * 277)]
    slices = [slice_cycles(400, 1), slice_cycles(2, 1), slice_cycles(400, 3), shared(30 + 3 * (19 + 200 * 2))]
    found = [int(x) for x in cases.run("poplibs", "cycles").split()]
    assert found == [*floats, *halves, *others, *integers, *slices]
    assert len(found) >= 20


@settings(max_examples=25, deadline=None)
@given(
    tiles=st.integers(2, 60), elements=st.integers(1, 5000), least=st.integers(1, 300), grain=st.integers(1, 9), data=st.data()
)  # fmt: skip
def test_the_linear_mapping_is_even_in_grains_and_gives_each_tile_the_least(cases, tiles, elements, least, grain, data):
    default = data.draw(st.sampled_from(["", "float", "half"]))
    if default:
        least, grain = (32, 2) if default == "float" else (64, 4)
    text = cases.run("poplibs", "mapping", tiles, elements, 0 if default else least, grain, default or "float")
    ranges = [tuple(map(int, part.split("-"))) for part in text.split()]
    assert [begin for begin, _ in ranges] == [0, *(end for _, end in ranges[:-1])], "consecutive"
    assert ranges[-1][1] == elements
    sizes = [end - begin for begin, end in ranges]
    assert all(begin % grain == 0 for begin, _ in ranges)
    grains = [math.ceil(size / grain) for size in sizes]
    assert max(grains) - min(grains) <= 1
    wanted = math.ceil(least / grain)
    assert len(ranges) == 1 or min(grains) >= wanted
    assert len(ranges) == min(tiles, max(1, sum(grains) // wanted)), "as many tiles as can have the least"


def test_replicas_exchange_what_they_have_and_are_compared(cases):
    lines = cases.run("poplibs", "replicas").splitlines()
    assert lines[:5] == [
        "x: 1 2 3 10 20 30", "sum: 11 22 33 11 22 33", "mean: 5.5 11 16.5 5.5 11 16.5", "all: 1 2 3 10 20 30 1 2 3 10 20 30", "own: 0 1",
    ]  # fmt: skip
    assert lines[5].startswith("poplar::graph_replication_error: 'own' is not equal in replicas 0 and 1")


def test_replicas_of_a_group_exchange_among_themselves(cases):
    found = [np.array(line.split(), dtype=int).reshape(6, -1) for line in cases.run("poplibs", "groups").splitlines()]
    x = (np.arange(24) ** 2).reshape(6, 4)
    for kind, of_kind in (([[0, 1, 2], [3, 4, 5]], found[:4]), ([[0, 2, 4], [1, 3, 5]], found[4:])):
        for group in kind:
            total = x[group].sum(axis=0)
            for position, replica in enumerate(group):
                wanted = total, x[group].ravel(), np.append(total, [0, 0])[2 * position :][:2], x[group[1]]
                for seen, right in zip(of_kind, wanted, strict=True):
                    assert seen[replica].tolist() == right.tolist()


@pytest.mark.parametrize("scenario", ["convolutions", "randoms", "groups"])
def test_results_do_not_depend_on_the_number_of_threads(cases, scenario):
    text = cases.run("poplibs", scenario, SNNC_THREADS="1")
    assert text == cases.run("poplibs", scenario, SNNC_THREADS="3", SNNC_PARALLEL_MICROSECONDS="0")


def test_virtual_graphs_number_their_own_tiles(cases):
    lines = [line.strip() for line in cases.run("poplibs", "virtualGraphs").splitlines()]
    assert lines[:5] == ["4 3", "4 5 6 7", "0 1 2 3", "1 3 5", "0 1 2"]
    assert lines[5].startswith("poplar::invalid_tile_mapping: tile 3 for 'b' on a target of 3 tiles")


ERRORS = {
    "broadcast": ["poplibs_error", "{3,5}", "{4}"],
    "types": ["poplibs_error", "float and int"],
    "condition": ["poplibs_error", "condition", "float"],
    "shapes": ["poplibs_error", "{1,3,5}"],
    "dimension": ["poplibs_error", "dimension 2", "{3,5}"],
    "placeholder": ["poplibs_error", "_3 of 2"],
    "slice": ["poplibs_error", "6 in dimension 1", "{3,5}"],
    "unmapped": ["poplibs_error", "'ghost'", "not mapped"],
    "codelets": ["poplar::unknown_vertex_type", "popops::addCodelets(graph)"],
}


@pytest.mark.parametrize("name", ERRORS)
def test_refuses_what_does_not_fit(cases, name):
    text = cases.run("poplibs", "errors", name)
    for part in ERRORS[name]:
        assert part in text
