"""The bodies of the CUDA kernels, run on the processor, against the reference."""

import numpy as np
import pytest
from cpu_projects import assert_same_records, assert_same_training, data
from cuda_projects import opened
from indexed_nets import choosing, convolutional, shaping, sparse_recurrent
from nets import delayed, feedback, learnable, of_model, recurrent, skip
from poplar_projects import hostile, several_inputs

from snnc.backends.reference.engine import ReferenceEngine
from snnc.compiler.losses import parse_loss
from snnc.compiler.lower import lower
from snnc.compiler.neurons import SLSTM
from snnc.compiler.optimizers import SGD, Adam

LOSSES = ("ce_mean_membrane", "ce_rate", "ce_count", "mse_count:0.8,0.1", "ce_max_membrane")
OPTIMIZERS = (Adam(1e-2), SGD(1e-2, 0.9), SGD(1e-2))
SHARINGS = ((1, 8), (2, 8), (4, 1))
"""Blocks of a team and samples of a tile."""
NETS = (recurrent, delayed, feedback, learnable, skip, several_inputs, choosing, convolutional, sparse_recurrent, shaping)
CASES = {make.__name__: make for make in NETS} | {"SLSTM": lambda random: of_model(random, SLSTM(0.1))}


@pytest.mark.parametrize("name", CASES)
def test_records_and_training_steps_equal_those_of_the_reference(name):
    at = list(CASES).index(name)
    program = lower(
        CASES[name](np.random.default_rng(3)), loss=parse_loss(LOSSES[at % 5]), optimizer=OPTIMIZERS[at % 3], loss_output=_output(name)
    )
    with opened(program, *SHARINGS[at % 3]) as engine:
        for density in (0.4, 0.8):
            inputs, _ = data(program, density=density)
            found = engine.forward(inputs, {})
            assert_same_records(found, ReferenceEngine(program).forward(inputs, {}))
        assert any(record.any() for record in found.values())
        assert_same_training(engine, program)


def _output(name):
    return None if name in ("several_inputs", "SLSTM") else "y"


def test_names_that_would_be_code_are_data_and_initial_values_are_forgotten_afterwards():
    program = lower(hostile(np.random.default_rng(3)))
    with opened(program) as engine:
        reference, (inputs, _) = ReferenceEngine(program), data(program)
        population = program.populations[0]
        v = np.random.default_rng(0).normal(size=(5, 8)).astype(np.float32)
        initial = {(population.id, "s0"): v, (population.id, population.output_buffers["v"]): v}
        changed = engine.forward(inputs, initial)
        assert_same_records(changed, reference.forward(inputs, initial))
        plain = engine.forward(inputs, {})
        assert_same_records(plain, reference.forward(inputs, {}))
        assert any((changed[name] != plain[name]).any() for name in plain)
