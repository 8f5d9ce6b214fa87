"""An ONNX file that snnc wrote is read as the original graph, and ONNX Runtime gives the same spikes for it."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from graph_equality import differences
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from random_graphs import any_graphs, feeds
from simulate import simulate
from wide import examples, sampled

from snnc.backends.reference.engine import ReferenceEngine
from snnc.backends.session import BackendSession
from snnc.compiler.errors import GraphError
from snnc.compiler.ir.graph import Graph, Input, Linear, Output, Population
from snnc.compiler.ir.verify import verify
from snnc.compiler.lowering.lower import lower
from snnc.compiler.neurons.library import LIF
from snnc.compiler.neurons.surrogates.library import atan
from snnc.frontends.load import load
from snnc.frontends.onnx.load import read_onnx
from snnc.frontends.onnx.writer.errors import UnknownFormError
from snnc.frontends.onnx.writer.write import write_onnx

ort = pytest.importorskip("onnxruntime")
FORMS = ("plain", "functions")
CORPUS = Path(__file__).parents[2] / "corpus"
FILES = [p for p in sorted(CORPUS.glob("*.onnx")) if not p.name.startswith(("bad_", "ann_", "trap_", "sj_psn"))]
SETTINGS = {"deadline": None, "suppress_health_check": list(HealthCheck), "derandomize": True}


F = np.float32


def run_reference(graph, feeds):
    program = lower(graph)
    with BackendSession(ReferenceEngine(program), program) as session:
        return session.run(feeds)


def agree(found, wanted):
    assert found.keys() == wanted.keys()
    for name, array in wanted.items():
        np.testing.assert_array_equal(found[name], array)


def runs(graph):
    try:
        verify(graph)
        lower(graph)
    except GraphError:
        return False
    return True


@settings(max_examples=examples(8, 40), **SETTINGS)
@given(graph=any_graphs(), form=st.sampled_from(FORMS))
def test_reading_undoes_writing(graph, form, tmp_path):
    assume(runs(graph))
    (path,) = write_onnx(graph, tmp_path / "m.onnx", form=form)
    assert differences(graph, load(path)) == []


@settings(max_examples=examples(8, 40), **SETTINGS)
@given(graph=any_graphs(), form=st.sampled_from(FORMS))
def test_onnx_runtime_computes_what_the_reference_computes(graph, form, tmp_path):
    assume(runs(graph))
    (path,) = write_onnx(graph, tmp_path / "m.onnx", form=form)
    onnx.checker.check_model(onnx.load(path), full_check=True)
    given, states = feeds(graph)
    session = ort.InferenceSession(str(path))
    found = dict(zip([o.name for o in session.get_outputs()], session.run(None, given | states), strict=True))
    program = lower(graph)
    with BackendSession(ReferenceEngine(program), program) as reference:
        wanted = reference.run(given, states)
    for name, array in wanted.items():
        assert found[name].shape == array.shape
        if np.isin(array, (0, 1)).all():
            np.testing.assert_array_equal(found[name], array)
        np.testing.assert_allclose(found[name], array, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("path", sampled([*FILES[::10], *sorted(CORPUS.glob("hand_nir_*.nir"))], 4), ids=lambda path: path.name)
def test_networks_of_the_corpus_come_back(path, tmp_path):
    graph = load(path)
    for form in FORMS:
        write_onnx(graph, tmp_path / "m.onnx", form=form)
        assert differences(graph, load(tmp_path / "m.onnx")) == []


# ---- the form with functions ----------------------------------------------------------------------------------------


def net():
    """Two layers with a recurrence; one neuron has its threshold by default."""
    random = np.random.default_rng(0)
    graph = Graph("two layers")
    graph.add("x", Input((4,)))
    graph.add("hidden", Population(LIF(0.5), (3,), {"beta": np.full(3, 0.75, F)}, frozenset({"beta"}), surrogate=atan(2.0)))
    graph.add("out", Population(LIF(0.5), (2,)))
    for name, rows, columns, source, target, delay in (
        ("fc1", 3, 4, "x", "hidden", 0),
        ("rec", 3, 3, "hidden", "hidden", 1),
        ("fc2", 2, 3, "hidden", "out", 0),
    ):
        graph.add(name, Linear((random.integers(-8, 17, (rows, columns)) / 8).astype(F)))
        graph.connect(source, name, delay=delay)
        graph.connect(name, target)
    graph.add("y", Output())
    graph.connect("out", "y")
    graph.assumptions = ["It was made by hand."]
    return graph


def body_of(model):
    (scan,) = [node for node in model.graph.node if node.op_type == "Scan"]
    return next(a.g for a in scan.attribute if a.name == "body")


def test_a_population_is_one_node_and_a_model_one_function(tmp_path):
    (path,) = write_onnx(net(), tmp_path / "m.onnx", form="functions")
    model = onnx.load(path)
    neurons = [node for node in body_of(model).node if node.domain]
    assert [(n.domain, n.op_type, n.name) for n in neurons] == [("ai.snnc", "LIF", "hidden"), ("ai.snnc", "LIF", "out")]
    (function,) = model.functions
    assert (function.domain, function.name) == ("ai.snnc", "LIF")
    assert list(function.input) == ["i", "v", "beta", "threshold"]
    assert list(function.output) == ["s", "v_next"]
    assert {node.domain for node in function.node} == {""}
    assert {(o.domain, o.version) for o in model.opset_import} == {("", 17), ("ai.snnc", 1)}


def test_both_forms_compute_the_same(tmp_path):
    x = np.random.default_rng(1).normal(size=(50, 3, 4)).astype(F) * 2
    paths = [write_onnx(net(), tmp_path / f"{form}.onnx", form=form)[0] for form in FORMS]
    one, two = (ort.InferenceSession(str(path)).run(None, {"x": x})[0] for path in paths)
    assert one.any()
    np.testing.assert_array_equal(one, two)


def test_functions_are_read_without_a_description_too(tmp_path):
    (path,) = write_onnx(net(), tmp_path / "m.onnx", form="functions")
    model = onnx.load(path)
    del model.metadata_props[:]
    onnx.save(model, path)
    x = np.random.default_rng(1).normal(size=(9, 2, 4)).astype(F) * 2
    agree(simulate(load(path), {"x": x}), run_reference(net(), {"x": x}))


def test_a_form_that_is_not_known_is_refused(tmp_path):
    with pytest.raises(UnknownFormError, match=r"SNNC-E261: the form 'pretty'.*plain, functions"):
        write_onnx(net(), tmp_path / "m.onnx", form="pretty")


@pytest.mark.parametrize("form", FORMS)
def test_two_writings_are_the_same_bytes_and_large_weights_lie_beside(form, tmp_path):
    one, two = (write_onnx(net(), tmp_path / name, form=form)[0].read_bytes() for name in ("a.onnx", "b.onnx"))
    assert one == two
    graph = net()
    graph.nx.nodes["fc1"]["operation"] = Linear(np.ones((3, 4), F).repeat(200, 1))
    graph.nx.nodes["x"]["operation"] = Input((800,))
    files = write_onnx(graph, tmp_path / "c.onnx", form=form, inside=1000)
    assert [f.name for f in files] == ["c.onnx.data", "c.onnx"]
    assert differences(graph, load(files[-1])) == []


# ---- files that somebody changed -------------------------------------------------------------------------------------


def array_of(model, name):
    return next(t for t in model.graph.initializer if t.name == name)


def put(model, name, array):
    array_of(model, name).CopyFrom(onnx.numpy_helper.from_array(array, name))


@pytest.mark.parametrize("form", FORMS)
def test_weights_and_parameters_are_those_of_the_file(form, tmp_path):
    (path,) = write_onnx(net(), tmp_path / "m.onnx", form=form)
    model = onnx.load(path)
    put(model, "fc1.weight", np.full((3, 4), 0.5, F))
    put(model, "hidden.beta", np.array([0.25, 0.5, 0.75], F))
    put(model, "out.threshold", np.array(0.5, F))
    onnx.save(model, path)
    wanted = net()
    wanted.nx.nodes["fc1"]["operation"] = Linear(np.full((3, 4), 0.5, F))
    hidden, out = wanted.operation("hidden"), wanted.operation("out")
    wanted.nx.nodes["hidden"]["operation"] = replace(hidden, parameters={"beta": np.array([0.25, 0.5, 0.75], F)})
    wanted.nx.nodes["out"]["operation"] = replace(out, parameters={"threshold": np.array(0.5, F)})
    assert differences(wanted, load(path)) == []


@pytest.mark.parametrize("form", FORMS)
def test_a_node_that_was_changed_counts_more_than_the_description(form, tmp_path):
    (path,) = write_onnx(net(), tmp_path / "m.onnx", form=form)
    model = onnx.load(path)
    nodes = model.functions[0].node if form == "functions" else body_of(model).node
    next(node for node in nodes if node.op_type == "Greater").op_type = "GreaterOrEqual"
    onnx.save(model, path)
    found = load(path)
    assert "ignores the description" in found.assumptions[-1]
    x = np.random.default_rng(1).integers(-8, 9, (9, 5, 4)).astype(F) / 4
    agree(simulate(found, {"x": x}), dict(zip(["y"], ort.InferenceSession(str(path)).run(None, {"x": x}), strict=True)))


def test_an_axis_that_another_tool_fixed_is_fixed(tmp_path):
    (path,) = write_onnx(net(), tmp_path / "m.onnx")
    model = onnx.load(path)
    for value in (model.graph.input[0], model.graph.output[0]):
        value.type.tensor_type.shape.dim[0].dim_value = 12
    onnx.save(model, path)
    wanted = net()
    wanted.steps = 12
    assert differences(wanted, load(path)) == []


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The file of `net` as bytes, values for it, and what they give."""
    (path,) = write_onnx(net(), tmp_path_factory.mktemp("written") / "m.onnx")
    x = np.random.default_rng(1).integers(-8, 9, (9, 2, 4)).astype(F) / 4
    return path.read_bytes(), x, run_reference(net(), {"x": x})


def damaged(change):
    def make(data):
        change(data)
        return json.dumps(data)

    return make


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: "",
        lambda data: "{",
        lambda data: "[]",
        lambda data: "[" * 100_000,
        lambda data: '{"version": 2, "steps": NaN}',
        lambda data: '{"version": 2, "steps": 1' + "0" * 5000 + "}",
        damaged(lambda data: data.update(version=99)),
        damaged(lambda data: data.pop("edges")),
        damaged(lambda data: data.update(more=1)),
        damaged(lambda data: data["nodes"][0].update({"is": "os.system"})),
        damaged(lambda data: data["nodes"][0].update(shape=[2**31 - 1])),
        damaged(lambda data: data["nodes"][0].update(shape=[True])),
        damaged(lambda data: data["nodes"][0].update(kind="beans")),
        damaged(lambda data: data["nodes"][1].update(shape=[1_000_000_000])),
        damaged(lambda data: data["nodes"][1].update(learnable=["nothing"])),
        damaged(lambda data: data["nodes"][1].update(initial={"v": {"type": "float32", "shape": [10**9], "base64": ""}})),
        damaged(lambda data: data["nodes"][1].update(initial={"v": "../../etc/passwd"})),
        damaged(lambda data: data["nodes"][3].update(weight="fc2.weight")),
        damaged(lambda data: data["models"][0].update(equations="s = __import__('os').system('true')\nv = s")),
        damaged(lambda data: data["models"][0].update(equations="v = v\ns = spike(v)")),
        damaged(lambda data: data["edges"][0].__setitem__(4, 2**31 - 1)),
        damaged(lambda data: data["edges"].pop()),
        damaged(lambda data: data.update(edges=data["edges"] * 5000)),
        damaged(lambda data: data.update(name="\ud800")),
        damaged(lambda data: data.update(state_inputs={"x": {"node": "hidden", "name": "v"}})),
        damaged(lambda data: data["defaults"].update(fc1={"beta": "fc1.weight"})),
        damaged(lambda data: data["values"].update(hidden={"s": "y"}, out=3)),
    ],
)
def test_a_damaged_description_is_said_and_not_used(damage, written, tmp_path):
    file, x, wanted = written
    model = onnx.load_from_string(file)
    model.metadata_props[0].value = damage(json.loads(model.metadata_props[0].value))
    onnx.save(model, tmp_path / "m.onnx")
    found = read_onnx(tmp_path / "m.onnx", {"x": x.shape}).graph
    assert "ignores the description" in found.assumptions[-1]
    agree(simulate(found, {"x": x}), wanted)


def test_a_description_without_an_output_of_the_file_is_not_used(tmp_path):
    (path,) = write_onnx(net(), tmp_path / "m.onnx")
    model = onnx.load(path)
    model.graph.output[0].name = "renamed"
    next(node for node in model.graph.node if node.op_type == "Scan").output[-1] = "renamed"
    onnx.save(model, path)
    found = load(path)
    assert dict(found.of_type(Output)).keys() == {"renamed"}
    assert "its inputs and outputs are not those of the file" in found.assumptions[-1]
