"""Averages over windows and axes: a sum, then a division, with the same bits on every backend and in PyTorch."""

import itertools

import cpu_projects
import cuda_projects
import numpy as np
import pytest
from poplar_projects import machine

from snnc.backends.poplar.emit import emit_poplar
from snnc.backends.poplar.engine import open_engine
from snnc.backends.reference.engine import ReferenceEngine
from snnc.compiler.ir.graph import Graph, Input, Output, Pool, Population, Reduce
from snnc.compiler.lowering.lower import lower
from snnc.compiler.neurons.library import Identity, Threshold
from snnc.compiler.tiles.mapper import make_plan

STEPS, BATCH = 3, 2
SHAPE = (2, 7, 9)
AVERAGES = {
    "three": Pool("average", (1, 3)),
    "nine": Pool("average", (3, 3), (2, 1), ((1, 1), (1, 1))),
    "inside": Pool("average", (3, 3), (2, 2), ((1, 1), (1, 1)), count_padding=False),
    "out": Pool("average", (2, 5), (2, 4), ceil=True),
    "four": Pool("average", (2, 2)),
    "whole": Reduce("mean", (1, 2)),
    "rows": Reduce("mean", (1,)),
}


def averages(kind):
    """Each average shown as it is, and compared with one of the fractions that it takes."""
    graph = Graph("averages")
    graph.add("x", Input(SHAPE, kind))
    for name, operation in AVERAGES.items():
        graph.connect("x", graph.add(f"{name} of x", operation))
        for what, model in (("shown", Identity()), ("fires", Threshold(np.float32(1) / np.float32(3), strict=False))):
            graph.connect(f"{name} of x", graph.add(f"{name} {what}", Population(model, shape_of(operation))))
            graph.connect(f"{name} {what}", graph.add(f"y {name} {what}", Output()))
    return graph


def shape_of(operation):
    probe = np.zeros((1, *SHAPE), np.float32)
    return tuple(average(operation, probe).shape[1:])


def average(operation, x):
    torch = pytest.importorskip("torch")
    values = torch.from_numpy(x)
    if isinstance(operation, Reduce):
        return values.mean(tuple(a + 1 for a in operation.axes)).numpy()
    return torch.nn.functional.avg_pool2d(
        values,
        operation.kernel,
        operation.stride or operation.kernel,
        tuple(before for before, _ in operation.padding) or 0,
        operation.ceil,
        operation.count_padding,
    ).numpy()


def inputs(kind):
    random = np.random.default_rng(4)
    x = (random.random((STEPS, BATCH, *SHAPE)) < 0.6).astype(np.float32)
    return {"x0": x if kind == "spikes" else x * random.normal(size=x.shape).astype(np.float32)}


@pytest.fixture(scope="module", params=["spikes", "values"])
def case(request):
    program = lower(averages(request.param), steps=STEPS)
    given = inputs(request.param)
    return program, given, ReferenceEngine(program).forward(given, {})


def assert_same_bits(found, wanted):
    assert found.keys() == wanted.keys()
    for name, record in wanted.items():
        np.testing.assert_array_equal(found[name], record, err_msg=name)


def test_the_reference_averages_as_pytorch_does(case):
    program, given, found = case
    labels = {o.label: o.id for o in program.outputs}
    for (name, operation), t in itertools.product(AVERAGES.items(), range(STEPS)):
        wanted = average(operation, given["x0"][t])
        spikes = np.isin(given["x0"], (0, 1)).all()
        np.testing.assert_allclose(found[labels[f"y {name} shown"]][t], wanted, rtol=0 if spikes else 1e-5, atol=0 if spikes else 1e-7)


def test_the_processor_has_the_same_bits(case):
    program, given, wanted = case
    with cpu_projects.opened(program) as engine:
        assert_same_bits(engine.forward(given, {}), wanted)


@pytest.mark.wide
def test_the_gpu_program_has_the_same_bits(case):
    program, given, wanted = case
    with cuda_projects.opened(program) as engine:
        assert_same_bits(engine.forward(given, {}), wanted)


@pytest.mark.wide
def test_the_poplar_program_has_the_same_bits(case, tmp_path):
    program, given, wanted = case
    plan = make_plan(program, machine(8), steps=STEPS, batch=BATCH)
    engine = open_engine(emit_poplar(program, plan, tmp_path / "project"))
    assert_same_bits(engine.forward(given, {}), wanted)
    engine.close()


@pytest.mark.parametrize("second", [Pool("average", (1, 3)), Reduce("mean", (1, 2))], ids=["pool", "mean"])
def test_an_average_of_averages_is_divided_twice(second):
    graph = Graph("twice")
    graph.add("x", Input((2, 3, 9), "values"))
    graph.connect("x", graph.add("first", Pool("average", (1, 3))))
    graph.connect("first", graph.add("second", second))
    graph.connect("second", graph.add("y", Output()))
    x = np.random.default_rng(1).normal(size=(STEPS, BATCH, 2, 3, 9)).astype(np.float32)
    (found,) = ReferenceEngine(lower(graph, steps=STEPS)).forward({"x0": x}, {}).values()
    wanted = x.astype(np.float64).mean(4, keepdims=True) if isinstance(second, Pool) else x.astype(np.float64).mean((3, 4))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-6)
