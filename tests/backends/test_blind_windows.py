"""Windows that lie completely in the padding: their output is the bias, or 0, and their weights get no gradient."""

import cpu_projects
import cuda_projects
import numpy as np
import pytest
from indexed_nets import read_out
from nets import join
from poplar_projects import machine
from same_training import assert_same_training
from wide import sampled

from snnc.backends.poplar.emit import emit_poplar
from snnc.backends.poplar.engine import open_engine
from snnc.backends.reference.engine import ReferenceEngine
from snnc.compiler.ir.arrays.windows import windows_of
from snnc.compiler.ir.graph import Conv, Graph, Input, Pool, Population
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import Adam
from snnc.compiler.lowering.lower import lower
from snnc.compiler.neurons.library import LIF
from snnc.compiler.tiles.mapper import make_plan

STEPS, BATCH = 6, 3
BLIND = {
    "one dimension": ((2, 2), Conv, {"kernel": (1,), "padding": ((4, 4),), "stride": (8,)}),
    "a dimension in front alone": ((2, 1), Conv, {"kernel": (1,), "padding": ((3, 0),), "stride": (5,)}),
    "corners": ((2, 2, 2), Conv, {"kernel": (1, 1), "padding": ((1, 1), (1, 1)), "stride": (3, 3)}),
    "dilated": ((2, 2, 3), Conv, {"kernel": (2, 2), "padding": ((2, 2), (0, 0)), "stride": (1, 1), "dilation": (5, 1)}),
    "groups": ((4, 2), Conv, {"kernel": (1,), "padding": ((2, 2),), "stride": (5,), "groups": 2}),
    "a sum": ((2, 2), Pool, {"kernel": (1,), "padding": ((4, 4),), "stride": (8,)}),
}


def net(name):
    """Blind windows beside a connection that sees, and as the only one."""
    shape, make, options = BLIND[name]
    random = np.random.default_rng(5)
    graph = Graph(name)
    graph.add("x", Input(shape, "spikes"))
    channels = shape[0] if make is Pool else 4
    if make is Pool:
        operation = Pool("sum", **options)
    else:
        weight = random.normal(size=(channels, shape[0] // options.get("groups", 1), *options["kernel"])).astype(np.float32)
        bias = random.uniform(0.2, 0.9, channels).astype(np.float32)
        operation = Conv(weight, bias, **{k: v for k, v in options.items() if k != "kernel"})
    made = (channels, *windows_of(name, operation, shape).output)
    width = int(np.prod(made))
    graph.add("alone", Population(LIF(0.9), made))
    join(graph, "blind", operation, "x", "alone")
    graph.add("hidden", Population(LIF(0.9), made))
    join(graph, "again", operation, "x", "hidden")
    graph.add("one to one", Population(LIF(0.8), made))
    graph.connect("hidden", "one to one", delay=1)
    return read_out(graph, random, ("alone", width), ("one to one", width))


def lowered(name):
    return lower(net(name), loss=parse_loss("ce_mean_membrane"), loss_output="y", optimizer=Adam(1e-2), steps=STEPS)


@pytest.fixture(params=BLIND)
def program(request):
    return lowered(request.param)


def assert_as_the_reference(engine, program):
    inputs, _ = cpu_projects.data(program, STEPS, BATCH)
    reference = ReferenceEngine(program)
    wanted = reference.forward(inputs, {})
    cpu_projects.assert_same_records(engine.forward(inputs, {}), wanted)
    batches = (cpu_projects.data(program, STEPS, BATCH, seed=k) for k in range(3))
    assert_same_training(engine, ReferenceEngine(program), batches, 1e-2, tolerance=(1e-5, 1e-4, 2e-5, 1e-5))
    blind = [p.name for p in program.parameters.values() if p.label == "blind.weight"]
    assert not any(engine.gradients()[name].any() for name in blind)


def test_the_reference_gives_biases(program):
    inputs, _ = cpu_projects.data(program, STEPS, BATCH)
    found = ReferenceEngine(program).forward(inputs, {})
    other = ReferenceEngine(program).forward({"x0": 1 - inputs["x0"]}, {})
    for name, record in found.items():
        np.testing.assert_array_equal(other[name], record)


@pytest.mark.representative("corners", "groups")
def test_the_processor_runs_and_trains_them(program):
    with cpu_projects.opened(program) as engine:
        assert_as_the_reference(engine, program)


@pytest.mark.wide
def test_the_gpu_program_runs_and_trains_them(program):
    with cuda_projects.opened(program) as engine:
        assert_as_the_reference(engine, program)


@pytest.mark.wide
@pytest.mark.parametrize("name", sampled(BLIND, 2))
def test_the_poplar_program_runs_and_trains_them(name, tmp_path):
    program = lowered(name)
    plan = make_plan(program, machine(1472 if program.name == "corners" else 6), steps=STEPS, batch=BATCH)
    engine = open_engine(emit_poplar(program, plan, tmp_path / "project"))
    assert_as_the_reference(engine, program)
    engine.close()
