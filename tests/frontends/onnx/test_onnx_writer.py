"""Graphs written as ONNX files: ONNX Runtime gives the reference's results, and the reader recovers the network."""

import nets
import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from simulate import simulate
from wide import examples

from snnc.backends.reference.engine import ReferenceEngine
from snnc.backends.session import BackendSession
from snnc.compiler.errors import WindowError
from snnc.compiler.ir.graph import (
    Add,
    Concat,
    Conv,
    FileLayout,
    Flatten,
    Graph,
    Input,
    Linear,
    OneToOne,
    Output,
    Pool,
    Population,
    Reduce,
    Reshape,
    Scale,
    Slice,
    StateRef,
)
from snnc.compiler.lowering.lower import lower
from snnc.compiler.neurons.library import LI, LIBRARY, LIF, CubaLIF
from snnc.compiler.neurons.neuron import neuron
from snnc.frontends.common.recognise import recognise
from snnc.frontends.load import load
from snnc.frontends.onnx.writer import write
from snnc.frontends.onnx.writer.builder import Builder, Constants, Names, StepTensor
from snnc.frontends.onnx.writer.errors import (
    CheckerError,
    NameClashError,
    NoOnnxFormError,
    OnnxFileError,
    OpenTimeError,
    WeightsTooLargeError,
)
from snnc.frontends.onnx.writer.operations import add_operation
from snnc.frontends.onnx.writer.write import write_onnx

ort = pytest.importorskip("onnxruntime")
F = np.float32


def run_file(path, feeds):
    session = ort.InferenceSession(str(path))
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, feeds), strict=True))


def run_reference(graph, feeds, states=None):
    program = lower(graph)
    with BackendSession(ReferenceEngine(program), program) as session:
        return session.run(feeds, states or {})


def eighths(random, shape):
    """Weights whose sums are exact in float32, in any order."""
    return random.integers(-8, 9, shape).astype(F) / 8


def layers(*names_and_operations, readout="all", port="", layout=None):
    """A chain, with an output of the name y behind."""
    graph = Graph("chain")
    last = None
    for name, operation in names_and_operations:
        graph.add(name, operation)
        if last is not None:
            graph.connect(last, name)
        last = name
    graph.add("y", Output(readout, layout or FileLayout()))
    graph.connect(last, "y", source_port=port)
    return graph


def agree(found, wanted, exact=True):
    assert found.keys() == wanted.keys()
    for name in wanted:
        assert found[name].shape == wanted[name].shape
        if exact:
            np.testing.assert_array_equal(found[name], wanted[name])
        else:
            np.testing.assert_allclose(found[name], wanted[name], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("make", nets.NETS, ids=lambda make: make.__name__)
def test_onnx_runtime_and_the_reader_agree_with_the_reference(make, tmp_path):
    graph = make(np.random.default_rng(1))
    x = np.random.default_rng(2).random((9, 5, 6)).astype(F)
    (path,) = write_onnx(graph, tmp_path / "m.onnx")
    found, wanted = run_file(path, {"x": x}), run_reference(graph, {"x": x})
    assert all(np.ptp(a) > 0 for a in wanted.values())
    agree(found, wanted, exact=False)
    agree(simulate(load(path), {"x": x}), wanted, exact=False)


@pytest.mark.parametrize("make", LIBRARY, ids=lambda make: make.__name__)
def test_every_neuron_of_the_library_survives_the_round_trip(make, tmp_path):
    graph = nets.of_model(np.random.default_rng(3), make())
    x = np.random.default_rng(4).random((8, 3, 6)).astype(F)
    (path,) = write_onnx(graph, tmp_path / "m.onnx")
    wanted = run_reference(graph, {"x": x})
    agree(run_file(path, {"x": x}), wanted, exact=False)
    agree(simulate(load(path), {"x": x}), wanted, exact=False)


@pytest.mark.parametrize(
    "make",
    [LIF, CubaLIF, lambda: LIF(reset="zero"), lambda: LIF(strict=False, reset_delay=False), lambda: LI(0.8)],
    ids=["LIF", "CubaLIF", "LIF to zero", "LIF at once", "LI"],
)
def test_the_reader_finds_the_same_equations(make, tmp_path):
    rng = np.random.default_rng(5)
    model = make()
    graph = layers(("x", Input((6,))), ("fc", Linear(eighths(rng, (4, 6)))), ("h", Population(model, (4,))))
    write_onnx(graph, tmp_path / "m.onnx")
    (found,) = (p for _, p in load(tmp_path / "m.onnx").of_type(Population))
    ours = recognise(model, {k: np.asarray(v) for k, v in model.parameters.items()})
    theirs = recognise(found.model, found.parameters)
    assert ours is not None
    assert (theirs.name, theirs.reset, theirs.compare) == (ours.name, ours.reset, ours.compare)
    assert len(found.model.states) == len(model.states)
    np.testing.assert_allclose(np.unique(theirs.decay), np.unique(ours.decay), rtol=1e-6)


CUSTOM = [
    neuron("two", states={"v": 0.25, "w": -0.5}, params={"a": 0.75}, equations="w = a*w + i\nv = v/2 + w\ns = spike_ge(v - 1)\nv = v - s"),
    neuron("clipped", states={"v": 0}, equations="v = max(min(v + i, 2), -2)\ns = where(gt(v, 1), 1, 0)\nv = where(s, 0, v)"),
    neuron("sign", states={"v": 0}, equations="v = abs(v)/2 + sign(i)\ns = ge(v, 1)*detach(neg(i))"),
]


@st.composite
def random_graphs(draw):
    """Two or three populations of any kind, with skips, delays and feedback; weights are eighths."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    models = [LIF(0.5), LIF(0.75, reset="zero"), CubaLIF(0.5, 0.75), LI(0.5), *CUSTOM]
    graph = Graph("random")
    time_axis, batch_axis = draw(st.sampled_from([(0, 1), (1, 0), (2, 0), (0, None)]))
    graph.add("x", Input((4,), "values", FileLayout(time_axis, batch_axis)))
    names = [f"h{k}" for k in range(draw(st.integers(1, 3)))]
    for name in names:
        model = draw(st.sampled_from(models))
        parameters = {p: eighths(random, (3,)) / 2 + F(0.5) for p in model.parameters if draw(st.booleans())}
        graph.add(name, Population(model, (3,), parameters, initial={s: eighths(random, (3,)) for s in model.states}))
    edges = [("x", names[0], 0)]
    for k, name in enumerate(names[1:], 1):
        edges.append((names[draw(st.integers(0, k - 1))], name, draw(st.integers(0, 2))))
    for _ in range(draw(st.integers(0, 3))):
        edges.append((draw(st.sampled_from(["x", *names])), draw(st.sampled_from(names)), draw(st.integers(1, 3))))
    for k, (source, target, delay) in enumerate(edges):
        nets.join(graph, f"fc{k}", Linear(eighths(random, (3, 4 if source == "x" else 3))), source, target, delay=delay)
    readout = draw(st.sampled_from(["all", "sum", "max", "last"]))
    graph.add(
        "y",
        Output(
            readout,
            FileLayout(time_axis if readout == "all" else None, None if batch_axis is None else 0 if readout != "all" else batch_axis),
        ),
    )
    graph.connect(names[-1], "y")
    return graph, random.integers(-8, 9, [*[3, 6][:: 1 if batch_axis == 0 else -1], 4]).astype(F) / 4


@settings(max_examples=examples(10, 25), deadline=None, suppress_health_check=list(HealthCheck))
@given(random_graphs())
def test_random_networks_run_in_onnx_runtime_as_in_the_reference(tmp_path, made):
    graph, x = made
    layout = graph.operation("x").layout
    if layout.batch_axis is None:
        x = x[:, 0]
    if layout.time_axis == 2:
        x = np.moveaxis(x, 1, 2)
    (path,) = write_onnx(graph, tmp_path / "m.onnx")
    agree(run_file(path, {"x": x}), run_reference(graph, {"x": x}))


def shaped_graph():
    random = np.random.default_rng(6)
    graph = layers(
        ("x", Input((2, 6, 6))),
        ("conv", Conv(eighths(random, (4, 1, 3, 3)), eighths(random, (4,)), (2, 1), ((1, 0), (1, 1)), (1, 1), 2)),
        ("scale", Scale(eighths(random, (4, 1, 1)), eighths(random, (4, 1, 1)))),
        ("fire", Population(LIF(0.5), (4, 3, 6))),
        ("pool", Pool("max", (2, 2), (2, 2), ((0, 0), (0, 0)), (1, 1), True)),
        ("mean", Pool("average", (2, 2), (1, 2), ((1, 0), (0, 1)), (1, 1), True, False)),
        ("sum", Pool("sum", (2, 1))),
        ("cut", Slice(0, 1, 4)),
        ("turn", Reshape((2, 3))),
        ("most", Reduce("max", (1,), True)),
        ("flat", Flatten()),
        ("each", OneToOne(eighths(random, (2,)))),
        ("out", Population(LI(0.5), (2,))),
    )
    graph.add("both", Concat())
    graph.add("total", Add())
    for source in ("each", "out"):
        graph.connect(source, "both")
        graph.connect(source, "total")
    for name, source in (("z", "both"), ("t", "total")):
        graph.add(name, Output())
        graph.connect(source, name)
    return graph


def test_convolutions_poolings_and_changes_of_shape_run_as_in_the_reference(tmp_path):
    graph = shaped_graph()
    x = eighths(np.random.default_rng(7), (5, 3, 2, 6, 6)) * 4
    (path,) = write_onnx(graph, tmp_path / "m.onnx")
    agree(run_file(path, {"x": x}), run_reference(graph, {"x": x}), exact=False)


@st.composite
def random_windows(draw):
    """A convolution or pooling of any kind, and the shape of its input."""
    dimensions = draw(st.integers(1, 2))

    def numbers(low, high):
        return tuple(draw(st.integers(low, high)) for _ in range(dimensions))

    kernel, stride, dilation = numbers(1, 3), numbers(1, 3), numbers(1, 2)
    padding = tuple((draw(st.integers(0, k // 2)), draw(st.integers(0, k // 2))) for k in kernel)
    shape = (4, *numbers(5, 8))
    kind = draw(st.sampled_from(["conv", "max", "sum", "average"]))
    if kind != "conv":
        return Pool(kind, kernel, stride, padding, dilation, draw(st.booleans()), draw(st.booleans())), shape
    groups = draw(st.sampled_from([1, 2, 4]))
    random = np.random.default_rng(draw(st.integers(0, 99)))
    return Conv(eighths(random, (8, 4 // groups, *kernel)), None, stride, padding, dilation, groups), shape


@settings(max_examples=examples(15, 40), deadline=None, suppress_health_check=list(HealthCheck))
@given(random_windows())
@example((Pool("max", (1, 2), (3, 2), ceil=True), (4, 5, 5)))
@example((Pool("max", (1, 2), (4, 2), ((0, 0), (1, 1)), ceil=True), (4, 6, 6)))
@example((Pool("max", (3, 2), (4, 3), dilation=(2, 1), ceil=True), (2, 10, 9)))
def test_windows_of_any_kind_run_as_in_the_reference(tmp_path, made):
    operation, shape = made
    graph = layers(("x", Input(shape)), ("w", operation))
    try:
        lower(graph)
    except WindowError:
        assume(False)
    x = eighths(np.random.default_rng(0), (2, 2, *shape))
    (path,) = write_onnx(graph, tmp_path / "m.onnx")
    agree(run_file(path, {"x": x}), run_reference(graph, {"x": x}), exact=False)


def test_batch_and_steps_are_open_and_fixed_steps_are_fixed(tmp_path):
    graph = nets.dense(np.random.default_rng(0))
    (path,) = write_onnx(graph, tmp_path / "m.onnx")
    for steps, batch in ((1, 1), (4, 7)):
        assert run_file(path, {"x": np.ones((steps, batch, 6), F)})["y"].shape == (steps, batch, 4)
    graph.steps = 4
    write_onnx(graph, path)
    assert onnx.load(path).graph.input[0].type.tensor_type.shape.dim[0].dim_value == 4
    assert load(path).steps == 4


def test_only_standard_operators_and_one_scan_are_used(tmp_path):
    (path,) = write_onnx(shaped_graph(), tmp_path / "m.onnx")
    model = onnx.load(path)
    assert [(o.domain, o.version) for o in model.opset_import] == [("", 17)]
    assert [n.op_type for n in model.graph.node].count("Scan") == 1
    assert not model.functions


def test_initial_states_are_inputs_for_each_sample(tmp_path):
    graph = nets.delayed(np.random.default_rng(8))
    graph.add("v", Output())
    graph.connect("readout", "v", source_port="v")
    graph.state_inputs = {"v0": StateRef("hidden", "v"), "s0": StateRef("hidden", "s")}
    rng = np.random.default_rng(9)
    feeds = {"x": rng.random((6, 3, 6)).astype(F)}
    states = {"v0": rng.random((3, 8)).astype(F), "s0": rng.integers(0, 2, (3, 8)).astype(F)}
    (path,) = write_onnx(graph, tmp_path / "m.onnx")
    found = run_file(path, feeds | states)
    wanted = run_reference(graph, feeds, states)
    agree(found, wanted, exact=False)
    assert (found["v"] != run_reference(graph, feeds)["v"]).any()


def test_all_states_can_be_made_inputs(tmp_path):
    graph = layers(("x", Input((3,))), ("h", Population(CubaLIF(), (3,))))
    (path,) = write_onnx(graph, tmp_path / "m.onnx", states=True)
    names = {i.name for i in onnx.load(path).graph.input}
    assert names == {"x", *(f"h.{s}" for s in CubaLIF().states)}
    assert graph.state_inputs == {}


def test_an_input_without_time_is_the_same_at_every_step(tmp_path):
    graph = layers(("x", Input((3,), "values", FileLayout(None, 0))), ("h", Population(LIF(0.5), (3,))))
    graph.steps = 5
    x = np.array([[0.5, 0.75, 2.0], [1.0, -1.0, 0.25]], F)
    (path,) = write_onnx(graph, tmp_path / "m.onnx")
    agree(run_file(path, {"x": x}), run_reference(graph, {"x": x}))
    graph.steps = None
    with pytest.raises(OpenTimeError, match=r"SNNC-E232.*give steps"):
        write_onnx(graph, path)


def test_an_input_without_a_batch_axis_serves_every_sample(tmp_path):
    graph = layers(("x", Input((3,))), ("h", Population(LIF(0.5), (3,))))
    graph.add("z", Input((3,), "values", FileLayout(0, None)))
    graph.connect("z", "h")
    feeds = {"x": np.ones((4, 2, 3), F) / 2, "z": np.arange(12, dtype=F).reshape(4, 3) / 8}
    (path,) = write_onnx(graph, tmp_path / "m.onnx")
    agree(run_file(path, feeds), run_reference(graph, feeds))


def test_large_weights_lie_beside_the_file(tmp_path):
    random = np.random.default_rng(10)
    graph = layers(("x", Input((40,))), ("fc", Linear(eighths(random, (30, 40)))), ("h", Population(LIF(0.5), (30,))))
    files = write_onnx(graph, tmp_path / "m.onnx", inside=1000)
    assert [f.name for f in files] == ["m.onnx.data", "m.onnx"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.onnx", "m.onnx.data"]
    x = eighths(random, (4, 2, 40))
    wanted = run_reference(graph, {"x": x})
    agree(run_file(files[-1], {"x": x}), wanted)
    agree(simulate(load(files[-1]), {"x": x}), wanted)


def test_a_folder_that_is_not_there_is_refused_and_nothing_is_left(tmp_path):
    graph = nets.dense(np.random.default_rng(0))
    with pytest.raises(OnnxFileError, match=r"SNNC-E231.*no such file"):
        write_onnx(graph, tmp_path / "no" / "m.onnx")
    (tmp_path / "m.onnx").mkdir()
    with pytest.raises(OnnxFileError, match=r"SNNC-E231.*cannot be written"):
        write_onnx(graph, tmp_path / "m.onnx")
    assert [p.name for p in tmp_path.iterdir()] == ["m.onnx"]


def test_one_name_for_an_input_and_a_state_is_refused(tmp_path):
    graph = nets.dense(np.random.default_rng(0))
    graph.state_inputs = {"x": StateRef("hidden", "v")}
    with pytest.raises(NameClashError, match=r"SNNC-E233.*'x'"):
        write_onnx(graph, tmp_path / "m.onnx")


def test_two_writings_are_the_same_bytes(tmp_path):
    graph = shaped_graph()
    one, two = (write_onnx(graph, tmp_path / name)[0].read_bytes() for name in ("a.onnx", "b.onnx"))
    assert one == two


def test_what_onnx_has_no_operator_for_is_refused():
    names = Names([])
    with pytest.raises(NoOnnxFormError, match=r"SNNC-E234: 'y' is a Output"):
        add_operation(Builder(names, Constants(names)), "y", Output(), [StepTensor("x", (3,))], (3,))


def test_what_the_checker_refuses_is_not_written(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise onnx.checker.ValidationError("no")

    monkeypatch.setattr(write.checker, "check_model", refuse)
    with pytest.raises(CheckerError, match="SNNC-E235"):
        write_onnx(nets.dense(np.random.default_rng(0)), tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_protobuf_cannot_hold_is_refused(tmp_path, monkeypatch):
    class Large:
        def SerializeToString(self):
            raise ValueError("exceeds 2 GiB")

    serialised = write._serialised
    monkeypatch.setattr(write, "_serialised", lambda model, path: serialised(Large(), path))
    with pytest.raises(WeightsTooLargeError, match=r"SNNC-E236.*2 GiB"):
        write_onnx(nets.dense(np.random.default_rng(0)), tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []


def test_a_hidden_name_of_the_user_cannot_clash_with_the_writers_own(tmp_path):
    graph = layers(
        ("batch", Input((3,))),
        ("number", Linear(np.eye(3, dtype=F), np.ones(3, F) / 2)),
        ("h.v", Population(LIF(0.5), (3,))),
        ("h", Population(LIF(0.5), (3,))),
    )
    x = eighths(np.random.default_rng(0), (4, 2, 3)) * 2
    (path,) = write_onnx(graph, tmp_path / "m.onnx")
    agree(run_file(path, {"batch": x}), run_reference(graph, {"batch": x}))
