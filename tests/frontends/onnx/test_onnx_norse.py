"""Forms of Norse's neurons: currents that act one step later, resting states folded by the export, coupled compartments."""

import numpy as np
import pytest
from onnx import helper
from onnx_files import File
from simulate import simulate

from snnc.compiler.ir.graph import Population
from snnc.frontends.common.recognise import recognise
from snnc.frontends.onnx.errors import OnnxError
from snnc.frontends.onnx.load import load_onnx

ort = pytest.importorskip("onnxruntime")

STEPS, BATCH, HERE, THERE = 8, 3, 6, 5


def runtime(path, feeds):
    session = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, feeds), strict=True))


def assert_as_in_the_file(path, feeds):
    """The imported graph computes on `feeds` what ONNX Runtime computes from the file, and something happens in it."""
    graph, wanted = load_onnx(path), runtime(path, feeds)
    found = simulate(graph, feeds)
    for name, values in wanted.items():
        assert np.abs(values).max() > 0
        np.testing.assert_allclose(found[name], values, rtol=0, atol=1e-5 * max(1.0, np.abs(values).max()), err_msg=name)
    return graph


def pulses(seed=0, steps=STEPS, size=HERE, shape=None, scale=1.0):
    return (scale * (np.random.default_rng(seed).random(shape or (steps, BATCH, size)) < 0.4)).astype(np.float32)


def weights(seed, inputs, outputs, scale=4.0):
    rng = np.random.default_rng(seed)
    return (scale * rng.normal(0, 1, (outputs, inputs))).astype(np.float32), (0.3 * rng.normal(0, 1, outputs)).astype(np.float32)


def gemm(f, x, w, b):
    return f("Gemm", x, w, b, transB=1)


def fired(f, v, threshold):
    return f("Cast", f("Greater", f("Sub", v, threshold), 0.0), to=1)


def late_current(f, x, state, threshold=0.4, kappa=0.5):
    """One step of Norse's LSNN: the spike depends on the current of the step before; returns (spike, state)."""
    v, i, b = state
    v = f("Add", v, f("Mul", 0.1, f("Add", f("Sub", 0.0, v), i)))
    i = f("Add", i, f("Mul", -0.2, i))
    b = f("Add", b, f("Mul", 0.02, f("Sub", threshold, b)))
    z = fired(f, v, b)
    v = f("Add", f("Mul", f("Sub", 1.0, z), v), f("Mul", z, 0.0))
    return z, (v, f("Add", i, x), f("Add", b, f("Mul", z, kappa)))


def folded_late_current(f, x, size, threshold=0.4):
    """The same step from rest, as exporters fold it: no spike can come, and only the current changes."""
    zeros = np.zeros((BATCH, size))
    return zeros, (f.const(zeros), f("Add", zeros, x), f.const(np.full((BATCH, size), threshold)))


def late_network(path, *, integrator):
    f = File()
    first, second = weights(1, HERE, THERE, 8.0), weights(2, THERE, 4, 6.0)
    rows, one, two = [], None, None
    for t in range(STEPS):
        x = gemm(f, f("Gather", "x", np.array(t), axis=0), *first)
        z, one = folded_late_current(f, x, THERE) if t == 0 else late_current(f, x, one)
        y = f.const(np.broadcast_to(second[1], (BATCH, 4))) if t == 0 else gemm(f, z, *second)
        if integrator:
            two = f("Add", f("Mul", 0.9, f.const(np.zeros((BATCH, 4))) if t == 0 else two), y)
            rows.append(two)
        elif t == 0:
            row, two = folded_late_current(f, y, 4)
            rows.append(f.const(row))
        else:
            row, two = late_current(f, y, two)
            rows.append(row)
    f.stack(rows, "y")
    return f.save(path, {"x": (STEPS, BATCH, HERE)}, ["y"])


@pytest.mark.parametrize("integrator", [True, False])
def test_a_current_that_acts_one_step_late_keeps_the_biases_in_their_steps(tmp_path, integrator):
    path = late_network(tmp_path / "late.onnx", integrator=integrator)
    graph = assert_as_in_the_file(path, {"x": pulses()})
    assert len(list(graph.of_type(Population))) == 2


def test_a_single_step_pairs_a_late_current_with_its_state(tmp_path):
    f = File()
    w, b = weights(1, HERE, THERE, 8.0)
    z, state = late_current(f, gemm(f, "x", w, b), ("v", "i", "b"))
    for name, value in zip(("z", "v_out", "i_out", "b_out"), (z, *state), strict=True):
        f.nodes.append(_identity(value, name))
    shape = (BATCH, THERE)
    path = f.save(tmp_path / "step.onnx", {"x": (BATCH, HERE), "v": shape, "i": shape, "b": shape}, ["z", "v_out", "i_out", "b_out"])
    rng = np.random.default_rng(3)
    states = {n: rng.normal(0.2, 0.2, shape).astype(np.float32) for n in ("v", "i", "b")}
    x, rows, now = pulses(), {"z": [], "v_out": [], "i_out": [], "b_out": []}, dict(states)
    for t in range(STEPS):
        out = runtime(path, {"x": x[t], **now})
        for name, row in rows.items():
            row.append(out[name])
        now = {n: out[f"{n}_out"] for n in states}
    found = simulate(load_onnx(path), {"x": x}, states)
    for name, row in rows.items():
        np.testing.assert_allclose(found[name], np.stack(row), atol=1e-5, err_msg=name)
    assert np.stack(rows["z"]).any()


def _identity(value, name):
    return helper.make_node("Identity", [value], [name])


def test_resting_states_that_only_the_first_step_shows_are_found(tmp_path):
    f = File()
    w, b = weights(1, HERE, THERE, 60.0)
    v, u = -70.0, -14.0
    first, rows, steps = (v + 0.25 * (0.04 * v**2 + 5 * v + 140 - u), u + 0.005 * (0.2 * v - u)), [], 20
    for t in range(steps):
        x = gemm(f, f("Gather", "x", np.array(t), axis=0), w, b)
        if t == 0:
            v, u = f("Add", first[0], f("Mul", x, 0.25)), f.const(first[1])
        else:
            rise = f("Add", f("Add", f("Mul", f("Pow", v, 2.0), 0.04), f("Mul", v, 5.0)), 140.0)
            wanted = f("Mul", f("Sub", f("Mul", v, 0.2), u), 0.005)
            v, u = f("Add", v, f("Mul", f("Add", f("Sub", rise, u), x), 0.25)), f("Add", u, wanted)
        z = fired(f, v, 30.0)
        kept = f("Sub", 1.0, z)
        v = f("Add", f("Mul", kept, v), f("Mul", z, -65.0))
        u = f("Add", f("Mul", kept, u), f("Mul", z, f("Add", u, 6.0)))
        rows.append(z)
    f.stack(rows, "y")
    path = f.save(tmp_path / "izhikevich.onnx", {"x": (steps, BATCH, HERE)}, ["y"])
    graph = assert_as_in_the_file(path, {"x": pulses(steps=steps)})
    (population,) = [p for _, p in graph.of_type(Population)]
    assert {float(np.unique(a).item()) for a in population.initial.values()} == {-70.0, -14.0}


def test_compartments_that_are_coupled_after_they_fired_get_a_delay(tmp_path):
    f = File()
    w, b = weights(1, HERE, THERE)
    coupling = (0.3 * np.random.default_rng(5).normal(0, 1, (THERE, THERE))).astype(np.float32)
    v, rows = f.const(np.zeros((BATCH, THERE))), []
    for t in range(STEPS):
        v = f("Add", f("Mul", 0.8, v), gemm(f, f("Gather", "x", np.array(t), axis=0), w, b))
        z = fired(f, v, 1.0)
        v = f("Mul", f("Sub", 1.0, z), v)
        v = f("Add", v, f("Mul", 0.1, f("MatMul", v, coupling)))
        rows.append(z)
    f.stack(rows, "y")
    graph = assert_as_in_the_file(f.save(tmp_path / "coupled.onnx", {"x": (STEPS, BATCH, HERE)}, ["y"]), {"x": pulses()})
    assert any(e.delay == 1 for e in graph.edges)


def leaking_readout(f, x, state, leak, alpha):
    v, i = state
    i = f("Add", i, x)
    return f("Add", v, f("Mul", 0.1, f("Add", f("Sub", leak, v), i))), f("Mul", i, alpha)


@pytest.mark.parametrize("alpha", [0.8, None])
def test_an_integrator_with_a_resting_potential_is_recognised(tmp_path, alpha):
    f = File()
    w, b = weights(1, HERE, THERE)
    v, i, rows = f.const(np.full((BATCH, THERE), 0.3)), f.const(np.zeros((BATCH, THERE))), []
    for t in range(STEPS):
        x = gemm(f, f("Gather", "x", np.array(t), axis=0), w, b)
        if alpha is None:
            v = f("Add", v, f("Mul", 0.1, f("Add", f("Sub", 0.3, v), x)))
        else:
            v, i = leaking_readout(f, x, (v, i), 0.3, alpha)
        rows.append(v)
    f.stack(rows, "y")
    graph = assert_as_in_the_file(f.save(tmp_path / "li.onnx", {"x": (STEPS, BATCH, HERE)}, ["y"]), {"x": pulses()})
    (population,) = [p for _, p in graph.of_type(Population)]
    facts = recognise(population.model, population.parameters)
    assert population.model.name == facts.name == "LI"
    np.testing.assert_allclose((facts.decay, facts.gain, facts.drive), [[0.9], [0.1], [0.03]], rtol=1e-5)
    assert (facts.syn_decay is None) == (alpha is None)


def written(path, operator, axis, order=None):
    """A file whose steps write their outputs into a tensor, as `y[t] = v` is exported."""
    f = File()
    shape = (STEPS, BATCH, HERE) if axis == 0 else (BATCH, STEPS, HERE)
    v, y = f.const(np.zeros((BATCH, HERE))), f.const(np.zeros(shape))
    for t in range(STEPS):
        v = f("Add", f("Mul", 0.5, v), f("Gather", "x", np.array(t), axis=0))
        at = order[t] if order else t
        row = f("Unsqueeze", v, np.array([axis]))
        if operator == "ScatterElements":
            box = tuple(1 if k == axis else d for k, d in enumerate(shape))
            y = f("ScatterElements", y, np.full(box, at), row, axis=axis)
        elif axis == 0:
            y = f("ScatterND", y, np.array([[at]]), row)
        else:
            y = f("ScatterND", y, np.array([[[k, at]] for k in range(BATCH)]), row)
    f.nodes.append(_identity(y, "y"))
    return f.save(path, {"x": (STEPS, BATCH, HERE)}, ["y"])


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("operator", ["ScatterElements", "ScatterND"])
def test_outputs_that_are_written_step_by_step_are_stacked(tmp_path, operator, axis):
    assert_as_in_the_file(written(tmp_path / "written.onnx", operator, axis), {"x": pulses()})


def test_outputs_that_are_written_in_another_order_are_refused(tmp_path):
    with pytest.raises(OnnxError, match=r"SNNC-E215: .* not in the order of the steps"):
        load_onnx(written(tmp_path / "reversed.onnx", "ScatterElements", 0, order=list(reversed(range(STEPS)))))


def scatter(tmp_path, operator, index, updates, **attributes):
    f = File()
    y = f(operator, np.zeros((4, 5)), index, f("Gather", "x", np.array(0), axis=0), **attributes)
    f.nodes.append(_identity(y, "y"))
    return f.save(tmp_path / "scatter.onnx", {"x": (3, *updates)}, ["y"])


@pytest.mark.parametrize(
    ("operator", "index", "updates", "code"),
    [
        ("ScatterElements", np.array([[0, 1, 2, 3, 0]]), (1, 5), "E210"),
        ("ScatterElements", np.full((2, 5), 1), (2, 5), "E210"),
        ("ScatterElements", np.full((1, 3), 1), (1, 3), "E210"),
        ("ScatterElements", np.full((1, 5), 9), (1, 5), "E209"),
        ("ScatterND", np.array([[2], [0]]), (2, 5), "E210"),
        ("ScatterND", np.array([[1, 1], [2, 2]]), (2,), "E210"),
        ("ScatterND", np.array([[7]]), (1, 5), "E209"),
        ("ScatterND", np.array([[0, 0, 0]]), (1,), "E209"),
    ],
)
def test_scattered_writes_are_refused(tmp_path, operator, index, updates, code):
    with pytest.raises(OnnxError, match=f"SNNC-{code}"):
        load_onnx(scatter(tmp_path, operator, index, updates))


def test_writes_that_add_are_refused(tmp_path):
    with pytest.raises(OnnxError, match=r"SNNC-E210: .* a scatter with a reduction"):
        load_onnx(scatter(tmp_path, "ScatterND", np.array([[1]]), (1, 5), reduction="add"))
