"""Random networks with everything that a graph can contain: CUDA kernels, run on the CPU, compared with the reference."""

import numpy as np
from cpu_projects import assert_same_records, assert_same_training, data
from cuda_projects import SPLIT, opened
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
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
SHARINGS = st.sampled_from([(None, None), (1, 1), (2, 8), (4, 1), (4, 8)])


@settings(BUILT, max_examples=examples(2, 3))
@given(any_graphs(), SHARINGS)
def test_random_networks_are_trained_as_in_the_reference(graph, sharing):
    assume(any(True for _ in graph.of_type(Population)))
    graph.steps = 6
    try:
        program = lower(with_readout(graph), loss=parse_loss("ce_mean_membrane"), loss_output="the readout", optimizer=SGD(1e-3))
    except SnncError:
        assume(False)
    with opened(program, *sharing) as engine:
        inputs, _ = data(program, 6, 3, seed=7)
        assert_same_records(engine.forward(inputs, {}), ReferenceEngine(program).forward(inputs, {}))
        assert_same_training(engine, program, tolerance=SPLIT, updates=2, rate=1e-3, steps=6, batch=3)
        assert all(np.isfinite(value).all() for value in engine.get_parameters().values())
