"""Random networks with everything that a graph can contain: the C++ program compared with the reference, forward and in training."""

import pytest
from cpu_projects import assert_same_records, assert_same_training, data, opened
from hypothesis import HealthCheck, Phase, assume, given, settings
from random_graphs import any_graphs, with_readout
from wide import examples

from snnc.backends.reference.engine import ReferenceEngine
from snnc.compiler.errors import SnncError
from snnc.compiler.ir.graph import Population
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import SGD
from snnc.compiler.lowering.lower import lower

BUILT = settings(deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.explicit, Phase.generate])
"""Each example is compiled: a failing one is not made smaller."""


@pytest.mark.wide
@settings(BUILT, max_examples=examples(3, 12))
@given(any_graphs())
def test_random_networks_run_as_in_the_reference(graph):
    try:
        program = lower(graph)
    except SnncError:
        assume(False)
    inputs, _ = data(program, program.steps or 5, 3)
    with opened(program) as engine:
        assert_same_records(engine.forward(inputs, {}), ReferenceEngine(program).forward(inputs, {}))


@settings(BUILT, max_examples=examples(3, 12))
@given(any_graphs())
def test_random_networks_are_trained_as_in_the_reference(graph):
    assume(any(True for _ in graph.of_type(Population)))
    graph.steps = 6
    try:
        program = lower(with_readout(graph), loss=parse_loss("ce_mean_membrane"), loss_output="the readout", optimizer=SGD(1e-3))
    except SnncError:
        assume(False)
    with opened(program) as engine:
        assert_same_training(engine, program, updates=2, rate=1e-3, steps=6, batch=3)
