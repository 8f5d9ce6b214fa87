"""Single steps whose states share a tensor, or wait in a buffer that shifts by one entry per step."""

import numpy as np
import pytest
from onnx_files import File, leaky

import snnc
from snnc.backends.runtime.errors import DataShapeError
from snnc.cli.main import run_command
from snnc.compiler.ir.arrays.array_parts import part_name, part_of
from snnc.frontends.onnx.errors import OnnxError
from snnc.frontends.onnx.load import load_onnx

ort = pytest.importorskip("onnxruntime")

T, B, IN = 12, 3, 4
F = np.float32


def weights(rng, n, m):
    return rng.normal(0.3, 0.9, (m, n)).astype(F)


def called(f, value, name):
    f("Identity", value)
    f.nodes[-1].output[0] = name


def stepwise(path, x, states):
    """Run the file step by step, each state fed back from the output `<state>_out`."""
    session, rows = ort.InferenceSession(str(path)), []
    names = [o.name for o in session.get_outputs()]
    for now in x:
        found = dict(zip(names, session.run(None, {"x": now, **states}), strict=True))
        states = {n: found[f"{n}_out"] for n in states}
        rows.append(found)
    return {n: np.stack([r[n] for r in rows]) for n in names}


def agree(path, x, states, given=None):
    """Compare snnc on the reference, from the states that are not zeros by rule, with ONNX Runtime."""
    expected = stepwise(path, x, states)
    graph = load_onnx(path)
    with snnc.compile(graph, target="reference", steps=len(x), batch=x.shape[1]) as session:
        found = session.run({"x": x}, initial=states if given is None else given)
    assert set(found) == set(expected)
    assert 0.05 < expected["spk"].mean() < 0.95
    for name, rows in expected.items():
        spikes = np.isin(rows, (0, 1)).all()
        np.testing.assert_allclose(found[name], rows, atol=0 if spikes else 2e-5, err_msg=name)
    return graph


def inputs(rng, *shape):
    return (rng.random(shape) < 0.5).astype(F)


def two_layers(f, rng, first, second, n1, n2):
    w1, w2 = weights(rng, IN, n1), weights(rng, n1, n2)
    s1, m1 = leaky(f, f("Gemm", "x", w1, transB=1), first, beta=0.8)
    s2, m2 = leaky(f, f("Gemm", s1, w2, transB=1), second)
    called(f, s2, "spk")
    return m1, m2


@pytest.mark.parametrize("how", ["gather", "split", "slice"])
def test_membranes_stacked_on_an_axis_in_front(tmp_path, how):
    rng, n = np.random.default_rng(3), 5
    f = File()
    if how == "gather":
        parts = [f("Gather", "state", np.array(k), axis=0) for k in (0, 1)]
    elif how == "split":
        parts = [f("Squeeze", p, np.array([0])) for p in f("Split", "state", np.array([1, 1]), outputs=2, axis=0)]
    else:
        parts = [f("Reshape", f("Slice", "state", np.array([k]), np.array([k + 1]), np.array([0])), np.array([B, n])) for k in (0, 1)]
    f.stack(two_layers(f, rng, *parts, n, n), "state_out")
    path = f.save(tmp_path / "m.onnx", {"x": [B, IN], "state": [2, B, n]}, ["spk", "state_out"])
    start = rng.normal(0.4, 0.6, (2, B, n)).astype(F)
    graph = agree(path, inputs(rng, T, B, IN), {"state": start})
    assert list(graph.state_inputs) == ["state[0]", "state[1]"]


def test_membranes_joined_along_the_feature_axis(tmp_path):
    rng, sizes = np.random.default_rng(4), (5, 3)
    f = File()
    m1, m2 = two_layers(f, rng, *f("Split", "state", np.array(sizes), outputs=2, axis=1), *sizes)
    called(f, f("Concat", m1, m2, axis=1), "state_out")
    path = f.save(tmp_path / "m.onnx", {"x": [B, IN], "state": [B, 8]}, ["spk", "state_out"])
    start = rng.normal(0.4, 0.6, (B, 8)).astype(F)
    graph = agree(path, inputs(rng, T, B, IN), {"state": start})
    assert list(graph.state_inputs) == ["state[:, 0:5]", "state[:, 5:8]"]


def two_in_one(path, batch=B):
    """Two layers of 5 neurons, their membranes in one tensor [2, B, 5]."""
    f = File()
    parts = [f("Gather", "state", np.array(k), axis=0) for k in (0, 1)]
    f.stack(two_layers(f, np.random.default_rng(12), *parts, 5, 5), "state_out")
    return f.save(path / "m.onnx", {"x": [batch, IN], "state": [2, batch, 5]}, ["spk", "state_out"])


def test_a_packed_state_of_an_open_batch(tmp_path):
    rng = np.random.default_rng(13)
    path = two_in_one(tmp_path, "batch")
    graph = agree(path, inputs(rng, T, B, IN), {"state": rng.normal(0.4, 0.6, (2, B, 5)).astype(F)})
    assert list(graph.state_inputs) == ["state[0]", "state[1]"]


def test_a_packed_state_is_given_whole_in_parts_or_as_a_number(tmp_path):
    rng = np.random.default_rng(14)
    graph = load_onnx(two_in_one(tmp_path))
    x, start = inputs(rng, T, B, IN), rng.normal(0.4, 0.6, (2, B, 5)).astype(F)
    with snnc.compile(graph, target="reference", steps=T, batch=B) as session:
        whole = session.run({"x": x}, initial={"state": start})
        parts = session.run({"x": x}, initial={"state[0]": start[0], "state[1]": start[1]})
        both = session.run({"x": x}, initial={"state": np.zeros_like(start), "state[0]": start[0], "state[1]": start[1]})
        number = session.run({"x": x}, initial={"state": 0.5})
        filled = session.run({"x": x}, initial={"state": np.full_like(start, 0.5)})
        nothing = session.run({"x": x})
        for wrong in (np.zeros((1, B, 5)), np.zeros(2)):
            with pytest.raises(DataShapeError, match="state"):
                session.run({"x": x}, initial={"state": wrong})
    for name, rows in whole.items():
        np.testing.assert_array_equal(parts[name], rows)
        np.testing.assert_array_equal(both[name], rows)
        np.testing.assert_array_equal(number[name], filled[name])
        assert not np.array_equal(nothing[name], rows)


def test_the_command_line_takes_the_arrays_of_the_file(tmp_path):
    rng = np.random.default_rng(15)
    path = two_in_one(tmp_path)
    x, start = inputs(rng, T, B, IN), rng.normal(0.4, 0.6, (2, B, 5)).astype(F)
    np.savez(tmp_path / "x.npz", x=x, state=start)
    assert run_command(["run", str(path), "--inputs", str(tmp_path / "x.npz"), "--outputs", str(tmp_path / "y.npz")]) == 0
    found = np.load(tmp_path / "y.npz")
    for name, rows in stepwise(path, x, {"state": start}).items():
        np.testing.assert_allclose(found[name], rows, atol=2e-5)
    assert snnc.verify(path, inputs=tmp_path / "x.npz").agree
    assert snnc.verify(path, steps=T, samples=B).agree


def test_currents_and_membranes_of_all_layers_in_one_tensor(tmp_path):
    rng, n = np.random.default_rng(5), 5
    f = File()
    now, rows = f("Gemm", "x", weights(rng, IN, n), transB=1), []
    for layer in (0, 1):
        both = f("Gather", "state", np.array(layer), axis=0)
        syn, mem = (f("Gather", both, np.array(k), axis=0) for k in (0, 1))
        syn = f("Add", f("Mul", 0.7, syn), now)
        spk, mem = leaky(f, syn, mem)
        rows.append(f("Concat", *(f("Unsqueeze", v, np.array([0])) for v in (syn, mem)), axis=0))
        now = f("Gemm", spk, weights(rng, n, n), transB=1)
    called(f, spk, "spk")
    f.stack(rows, "state_out")
    path = f.save(tmp_path / "m.onnx", {"x": [B, IN], "state": [2, 2, B, n]}, ["spk", "state_out"])
    start = rng.normal(0.2, 0.4, (2, 2, B, n)).astype(F)
    graph = agree(path, inputs(rng, T, B, IN), {"state": start})
    assert set(graph.state_inputs) == {"state[0, 0]", "state[0, 1]", "state[1, 0]", "state[1, 1]"}


def test_entries_written_one_by_one(tmp_path):
    rng, n = np.random.default_rng(6), 5
    f = File()
    m1, m2 = two_layers(f, rng, *(f("Gather", "state", np.array(k), axis=0) for k in (0, 1)), n, n)
    once = f("ScatterND", "state", np.array([[0]]), f("Unsqueeze", m1, np.array([0])))
    called(f, f("ScatterND", once, np.array([[1]]), f("Unsqueeze", m2, np.array([0]))), "state_out")
    path = f.save(tmp_path / "m.onnx", {"x": [B, IN], "state": [2, B, n]}, ["spk", "state_out"])
    agree(path, inputs(rng, T, B, IN), {"state": rng.normal(0.4, 0.6, (2, B, n)).astype(F)})


def delayed(path, depth, how="concat"):
    """A layer whose spikes reach the next one `depth` steps later, by way of a buffer [depth, B, n]."""
    rng, n = np.random.default_rng(9), 5
    f = File()
    s1, m1 = leaky(f, f("Gemm", "x", weights(rng, IN, n), transB=1), "mem", beta=0.8)
    late = f("Gather", "buffer", np.array(depth - 1), axis=0)
    s2, m2 = leaky(f, f("Gemm", late, weights(rng, n, n) + F(0.3), transB=1), "mem2")
    new = f("Unsqueeze", s1, np.array([0]))
    if how == "concat":
        moved = f("Concat", new, f("Slice", "buffer", np.array([0]), np.array([depth - 1]), np.array([0])), axis=0)
    else:
        ends = f("Slice", "buffer", np.array([depth - 1]), np.array([depth]), np.array([0]))
        rolled = f("Concat", ends, f("Slice", "buffer", np.array([0]), np.array([depth - 1]), np.array([0])), axis=0)
        moved = f("ScatterND", rolled, np.array([[0]]), new)
    for value, name in ((s2, "spk"), (m1, "mem_out"), (m2, "mem2_out"), (moved, "buffer_out")):
        called(f, value, name)
    shapes = {"x": [B, IN], "mem": [B, n], "mem2": [B, n], "buffer": [depth, B, n]}
    return f.save(path / "m.onnx", shapes, ["spk", "mem_out", "mem2_out", "buffer_out"]), rng


@pytest.mark.representative("concat-2", "roll-7")
@pytest.mark.parametrize("depth", [2, 3, 7, 40])
@pytest.mark.parametrize("how", ["concat", "roll"])
def test_a_buffer_that_moves_is_a_delay(tmp_path, depth, how):
    path, rng = delayed(tmp_path, depth, how)
    states = {n: rng.normal(0.4, 0.6, (B, 5)).astype(F) for n in ("mem", "mem2")}
    x = inputs(rng, T + 2 * depth, B, IN)
    graph = agree(path, x, {**states, "buffer": np.zeros((depth, B, 5), F)}, states)
    assert set(graph.state_inputs) == {"mem", "mem2"}
    assert depth in {e.delay for e in graph.edges}
    assert any("buffer" in a and "zeros" in a for a in graph.assumptions)
    assert snnc.verify(path, steps=depth + 5).agree


def test_past_spikes_handed_on_from_one_state_to_the_next(tmp_path):
    rng, n = np.random.default_rng(8), 5
    f = File()
    s1, m1 = leaky(f, f("Gemm", "x", weights(rng, IN, n), transB=1), "mem", beta=0.8)
    s2, m2 = leaky(f, f("Gemm", "old", weights(rng, n, n), transB=1), "mem2")
    for value, name in ((s2, "spk"), (m1, "mem_out"), (m2, "mem2_out"), (s1, "late_out"), ("late", "old_out")):
        called(f, value, name)
    names = ["mem", "mem2", "late", "old"]
    path = f.save(tmp_path / "m.onnx", {"x": [B, IN], **{k: [B, n] for k in names}}, ["spk", *(f"{k}_out" for k in names)])
    states = {k: np.zeros((B, n), F) for k in names}
    graph = agree(path, inputs(rng, T, B, IN), states, {})
    assert 2 in {e.delay for e in graph.edges}


@pytest.mark.parametrize("newest", ["first", "last"])
def test_a_buffer_read_at_every_age_with_weights_of_its_own(tmp_path, newest):
    rng, n, depth = np.random.default_rng(10), 5, 4
    f = File()
    s1, m1 = leaky(f, f("Gemm", "x", weights(rng, IN, n), transB=1), "mem", beta=0.8)
    current = f("Gemm", s1, weights(rng, n, n), transB=1)
    for k in range(depth):
        current = f("Add", current, f("Gemm", f("Gather", "buffer", np.array(k), axis=0), weights(rng, n, n), transB=1))
    s2, m2 = leaky(f, current, "mem2", threshold=2.0)
    new = f("Unsqueeze", s1, np.array([0]))
    kept = (0, depth - 1) if newest == "first" else (1, depth)
    kept = f("Slice", "buffer", np.array(kept[:1]), np.array(kept[1:]), np.array([0]))
    moved = f("Concat", *((new, kept) if newest == "first" else (kept, new)), axis=0)
    for value, name in ((s2, "spk"), (m1, "mem_out"), (m2, "mem2_out"), (moved, "buffer_out")):
        called(f, value, name)
    shapes = {"x": [B, IN], "mem": [B, n], "mem2": [B, n], "buffer": [depth, B, n]}
    path = f.save(tmp_path / "m.onnx", shapes, ["spk", "mem_out", "mem2_out", "buffer_out"])
    zeros = {k: np.zeros(v, F) for k, v in shapes.items() if k != "x"}
    graph = agree(path, inputs(rng, 20, B, IN), zeros, {})
    assert {e.delay for e in graph.edges} >= {1, 2, 3, 4}


def test_a_buffer_of_past_inputs(tmp_path):
    rng, n, depth = np.random.default_rng(11), 5, 3
    f = File()
    late = f("Gather", "buffer", np.array(depth - 1), axis=1)
    s1, m1 = leaky(f, f("Gemm", late, weights(rng, IN, n), transB=1), "mem", beta=0.8)
    kept = f("Slice", "buffer", np.array([0]), np.array([depth - 1]), np.array([1]))
    for value, name in ((s1, "spk"), (m1, "mem_out"), (f("Concat", f("Unsqueeze", "x", np.array([1])), kept, axis=1), "buffer_out")):
        called(f, value, name)
    shapes = {"x": [B, IN], "mem": [B, n], "buffer": [B, depth, IN]}
    path = f.save(tmp_path / "m.onnx", shapes, ["spk", "mem_out", "buffer_out"])
    zeros = {k: np.zeros(v, F) for k, v in shapes.items() if k != "x"}
    agree(path, inputs(rng, 20, B, IN), zeros, {})


def test_a_membrane_and_a_buffer_in_one_tensor(tmp_path):
    rng, n = np.random.default_rng(17), 5
    f = File()
    s1, m1 = leaky(f, f("Gemm", "x", weights(rng, IN, n), transB=1), f("Gather", "state", np.array(0), axis=0), beta=0.8)
    s2, m2 = leaky(f, f("Gemm", f("Gather", "state", np.array(3), axis=0), weights(rng, n, n) + F(0.3), transB=1), "mem")
    kept = f("Slice", "state", np.array([1]), np.array([3]), np.array([0]))
    front = (f("Unsqueeze", v, np.array([0])) for v in (m1, s1))
    for value, name in ((s2, "spk"), (f("Concat", *front, kept, axis=0), "state_out"), (m2, "mem_out")):
        called(f, value, name)
    path = f.save(tmp_path / "m.onnx", {"x": [B, IN], "state": [4, B, n], "mem": [B, n]}, ["spk", "state_out", "mem_out"])
    start = {"state": np.zeros((4, B, n), F), "mem": rng.normal(0.4, 0.6, (B, n)).astype(F)}
    start["state"][0] = rng.normal(0.4, 0.6, (B, n))
    graph = agree(path, inputs(rng, 20, B, IN), start)
    assert list(graph.state_inputs) == ["state[0]", "mem"]


def test_a_buffer_that_is_too_long_is_refused_with_advice(tmp_path):
    path, _ = delayed(tmp_path, 1500)
    with pytest.raises(OnnxError, match="its own input and output"):
        load_onnx(path)


def test_states_whose_batch_is_not_in_front_of_the_neurons_are_refused_with_advice(tmp_path):
    n = 5
    f = File()
    parts = [f("Transpose", f("Gather", "state", np.array(k), axis=0), perm=[1, 0]) for k in (0, 1)]
    membranes = two_layers(f, np.random.default_rng(19), *parts, n, n)
    f.stack([f("Transpose", m, perm=[1, 0]) for m in membranes], "state_out")
    path = f.save(tmp_path / "m.onnx", {"x": [B, IN], "state": [2, n, B]}, ["spk", "state_out"])
    with pytest.raises(OnnxError, match=r"states 'state'; give each population's state.* its own input and output"):
        load_onnx(path)


def test_a_membrane_that_goes_on_from_two_steps_before(tmp_path):
    rng, n = np.random.default_rng(18), 5
    f = File()
    s1, m1 = leaky(f, f("Gemm", "x", weights(rng, IN, n), transB=1), f("Gather", "state", np.array(0), axis=0))
    called(f, s1, "spk")
    called(f, f("Concat", f("Gather", "state", np.array([1]), axis=0), f("Unsqueeze", m1, np.array([0])), axis=0), "state_out")
    path = f.save(tmp_path / "m.onnx", {"x": [B, IN], "state": [2, B, n]}, ["spk", "state_out"])
    zeros = {"state": np.zeros((2, B, n), F)}
    agree(path, inputs(rng, 20, B, IN), zeros, {})


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("state[0]", ("state", (0,))),
        ("a[1][:, 2:3]", ("a[1]", (slice(None), slice(2, 3)))),
        ("state", None),
        ("state[]", None),
        ("state[-1]", None),
        ("state[0:1:2]", None),
        ("[0]", None),
    ],
)
def test_a_name_says_which_part_it_is(name, found):
    assert part_of(name) == found
    assert found is None or part_name(*found) == name


def test_zeros_for_a_buffer_are_taken_and_other_contents_refused(tmp_path, capsys):
    path, rng = delayed(tmp_path, 3)
    x, states = inputs(rng, T, B, IN), {n: rng.normal(0.4, 0.6, (B, 5)).astype(F) for n in ("mem", "mem2")}
    command = ["run", str(path), "--inputs", str(tmp_path / "x.npz"), "--outputs", str(tmp_path / "y.npz")]
    np.savez(tmp_path / "x.npz", x=x, buffer=np.zeros((3, B, 5), F), **states)
    assert run_command(command) == 0
    expected = stepwise(path, x, {**states, "buffer": np.zeros((3, B, 5), F)})
    np.testing.assert_array_equal(np.load(tmp_path / "y.npz")["spk"], expected["spk"])
    np.savez(tmp_path / "x.npz", x=x, buffer=np.ones((3, B, 5), F), **states)
    assert run_command(command) == 2
    assert "SNNC-E532" in capsys.readouterr().err


def test_an_array_for_a_state_without_effect_is_ignored_in_files_and_projects(tmp_path):
    rng, f = np.random.default_rng(4), File()
    spike, mem = leaky(f, f("Gemm", "x", weights(rng, IN, 5), transB=1), "mem", beta=0.8)
    called(f, spike, "spk_out")
    called(f, mem, "mem_out")
    shapes = {"x": [B, IN], "spk": [B, 5], "mem": [B, 5]}
    path = f.save(tmp_path / "m.onnx", shapes, ["spk_out", "mem_out"])
    assert load_onnx(path).idle_inputs == {"spk": "ignored"}
    x, start = inputs(rng, T, B, IN), rng.normal(0.4, 0.6, (B, 5)).astype(F)
    np.savez(tmp_path / "x.npz", x=x, spk=np.ones((B, 5), F), mem=start)
    project = ["compile", str(path), "-o", str(tmp_path / "p"), "--target", "reference", "--steps", str(T)]
    assert run_command(project) == 0
    expected = rows_of(path, x, start)
    for model in (path, tmp_path / "p"):
        assert run_command(["run", str(model), "--inputs", str(tmp_path / "x.npz"), "--outputs", str(tmp_path / "y.npz")]) == 0
        np.testing.assert_array_equal(np.load(tmp_path / "y.npz")["spk_out"], expected)


def rows_of(path, x, start):
    session, rows, mem = ort.InferenceSession(str(path)), [], start
    for now in x:
        spike, mem = session.run(["spk_out", "mem_out"], {"x": now, "spk": np.zeros((B, 5), F), "mem": mem})
        rows.append(spike)
    return np.stack(rows)
