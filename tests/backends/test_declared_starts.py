"""Declared initial states, read through delays: every target outputs them before the first step, like given initial states."""

import cpu_projects
import cuda_projects
import numpy as np
import pytest
from nets import linear
from poplar_projects import machine

import snnc
from snnc.backends.poplar.emit import emit_poplar
from snnc.backends.poplar.engine import open_engine
from snnc.backends.poptorch.build import build_operation
from snnc.backends.poptorch.emit import emit_poptorch
from snnc.backends.poptorch.engine import PopTorchEngine
from snnc.backends.reference.engine import ReferenceEngine
from snnc.compiler.ir.graph import Add, Flatten, Graph, Input, Output, Population
from snnc.compiler.lowering.lower import lower
from snnc.compiler.neurons.library import LI, Identity
from snnc.compiler.neurons.neuron import neuron
from snnc.compiler.tiles.mapper import make_plan
from snnc.frontends.onnx.load import load_onnx
from snnc.frontends.onnx.writer.write import write_onnx

STEPS, BATCH, SIZE = 5, 2, 4
START = np.linspace(-0.4, 0.8, SIZE).astype(np.float32)
FIRED = neuron("fired", inputs="i", states={"v": 0.25, "z": 1.0}, equations="v = 0.5*v + i\nz = spike(v - 1)", output="v")


def delayed(declared=True):
    """Delays of one and two steps, straight, through weights, through a sum of another delay, and to an output."""
    graph = Graph("delayed")
    graph.add("x", Input((SIZE,), "values"))
    graph.add("a", Population(LI(0.9), (SIZE,), initial={"v": START} if declared else {}))
    graph.add("b", Population(FIRED, (SIZE,), initial={} if declared else {"v": np.float32(0), "z": np.float32(0)}))
    graph.connect("x", "a")
    graph.connect("x", "b")
    for name, source, port, delay in (("one", "a", "v", 1), ("two", "a", "v", 2), ("spike", "b", "z", 1), ("other", "b", "v", 2)):
        graph.add(name, Population(Identity(), (SIZE,)))
        graph.connect(source, name, source_port=port, delay=delay)
        graph.connect(name, graph.add(f"y {name}", Output()))
    graph.add("weighted", Population(LI(0.5), (3,)))
    graph.connect("a", graph.add("weights", linear(np.random.default_rng(2), 3, SIZE)), delay=1)
    graph.connect("weights", "weighted")
    graph.connect("a", graph.add("sum", Add()), delay=1)
    graph.connect("sum", graph.add("flat", Flatten()))
    graph.add("later", Population(Identity(), (SIZE,)))
    graph.connect("flat", "later", delay=1)
    for name in ("weighted", "later"):
        graph.connect(name, graph.add(f"y {name}", Output()))
    graph.connect("a", graph.add("y late", Output()), delay=2)
    return graph


def rows():
    """The input, and what each output shows, by hand."""
    x = np.random.default_rng(1).normal(size=(STEPS, BATCH, SIZE)).astype(np.float32)
    a, v, z = [np.broadcast_to(START, x[0].shape)] * 2, [np.full_like(x[0], 0.25)] * 2, [np.ones_like(x[0])] * 2
    for now in x:
        a.append(np.float32(0.9) * a[-1] + now)
        v.append(np.float32(0.5) * v[-1] + now)
        z.append((v[-1] > 1).astype(np.float32))
    weights = linear(np.random.default_rng(2), 3, SIZE).weight
    weighted = [np.zeros((BATCH, 3), np.float32)]
    for before in a[1 : STEPS + 1]:
        weighted.append(np.float32(0.5) * weighted[-1] + before @ weights.T)
    late = np.concatenate([np.zeros_like(x[:1]), a[1:STEPS]])
    wanted = {"one": a[1:], "two": a, "spike": z[1:], "other": v, "weighted": weighted[1:], "later": late, "late": a}
    return x, {f"y {name}": np.stack(value[:STEPS]) for name, value in wanted.items()}


def assert_shown(program, engine):
    x, wanted = rows()
    found = engine.forward({"x0": x}, {})
    labels = {o.label: o.id for o in program.outputs}
    for label, values in wanted.items():
        np.testing.assert_allclose(found[labels[label]], values, atol=1e-5, err_msg=label)
    again = engine.forward({"x0": x}, {})
    for name, record in found.items():
        np.testing.assert_array_equal(again[name], record)


@pytest.fixture(scope="module")
def program():
    return lower(delayed(), steps=STEPS)


def test_the_reference_shows_declared_states(program):
    assert_shown(program, ReferenceEngine(program))


def test_the_processor_shows_declared_states(program):
    with cpu_projects.opened(program) as engine:
        assert_shown(program, engine)


def test_the_gpu_program_shows_declared_states(program):
    with cuda_projects.opened(program) as engine:
        assert_shown(program, engine)


def test_the_poplar_program_shows_declared_states(program, tmp_path):
    engine = open_engine(emit_poplar(program, make_plan(program, machine(4), steps=STEPS, batch=BATCH), tmp_path / "project"))
    assert_shown(program, engine)
    engine.close()


@pytest.mark.wide
def test_the_poptorch_operation_shows_declared_states(program, tmp_path):
    plan = make_plan(program, machine(4), steps=STEPS, batch=BATCH)
    folder = emit_poptorch(program, plan, tmp_path / "project")
    engine = PopTorchEngine(program, plan, folder, build_operation(folder))
    assert_shown(program, engine)
    engine.close()


def test_a_declared_start_is_the_same_start_given(program):
    x, _ = rows()
    given = {"a.v": START, "b.v": 0.25, "b.z": 1.0}
    with (
        snnc.compile(delayed(), target="reference", steps=STEPS, batch=BATCH) as declared,
        snnc.compile(delayed(False), target="reference", steps=STEPS, batch=BATCH) as plain,
    ):
        wanted, found = declared.run({"x": x}), plain.run({"x": x}, initial=given)
        over = declared.run({"x": x}, initial=dict.fromkeys(given, 0.0))
        zeros = plain.run({"x": x})
    for name, record in wanted.items():
        np.testing.assert_array_equal(found[name], record, err_msg=name)
        np.testing.assert_array_equal(over[name], zeros[name], err_msg=name)


def test_an_onnx_file_shows_declared_states(tmp_path):
    ort = pytest.importorskip("onnxruntime")
    write_onnx(delayed(), tmp_path / "m.onnx")
    x, wanted = rows()
    session = ort.InferenceSession(str(tmp_path / "m.onnx"))
    found = dict(zip([o.name for o in session.get_outputs()], session.run(None, {"x": x}), strict=True))
    for name, values in wanted.items():
        np.testing.assert_allclose(found[name], values, atol=1e-5, err_msg=name)
    graph = load_onnx(tmp_path / "m.onnx")
    again = ReferenceEngine(lower(graph, steps=STEPS)).forward({"x0": x}, {})
    for output, values in zip(lower(graph, steps=STEPS).outputs, again.values(), strict=True):
        np.testing.assert_allclose(values, wanted[output.label], atol=1e-5, err_msg=output.label)
