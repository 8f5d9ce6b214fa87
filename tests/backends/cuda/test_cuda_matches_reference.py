"""The bodies of the CUDA kernels, run on the CPU, compared with the reference."""

import numpy as np
import pytest
from cpu_projects import (
    assert_initial_values_are_forgotten,
    assert_runs_and_trains_like_the_reference,
    data,
)
from cuda_projects import CASES, SPLIT, opened, program_of
from poplar_projects import hostile
from wide import sampled

from snnc.backends.reference.engine import ReferenceEngine
from snnc.compiler.lowering.lower import lower

SHARINGS = ((1, 8), (2, 8), (4, 1))
"""Blocks of a team and samples of a tile."""


@pytest.mark.representative("recurrent", "sparse_recurrent", "SLSTM")
@pytest.mark.parametrize("name", sampled(CASES, 2))
def test_records_and_training_steps_equal_those_of_the_reference(name):
    at = list(CASES).index(name)
    program = program_of(name)
    with opened(program, *SHARINGS[at % 3]) as engine:
        assert_runs_and_trains_like_the_reference(engine, program, SPLIT)


def test_a_recurrence_without_a_core_runs_as_a_feedback():
    program = program_of("recurrent")
    with opened(program, 2, 8) as engine:
        engine._setting("clusters", 0)
        assert_runs_and_trains_like_the_reference(engine, program, SPLIT)
        assert "teams of blocks" in engine.profile().values()


def test_teams_that_follow_a_core_read_the_weights_of_the_last_update():
    """A core reads the weights themselves; copies are made when teams of blocks run instead."""
    program = program_of("recurrent")
    reference = ReferenceEngine(program)
    with opened(program, 2, 8) as engine:
        for update, clusters in enumerate((1, 1, 0, 1, 1, 0)):
            engine._setting("clusters", clusters)
            inputs, target = data(program, seed=update)
            assert engine.train_batch(inputs, target, 1e-2) == pytest.approx(reference.train_batch(inputs, target, 1e-2), rel=1e-4)
            assert ("teams of blocks" in engine.profile().values()) == (clusters == 0)
            for name, gradient in reference.gradients().items():
                assert np.linalg.norm(engine.gradients()[name] - gradient) <= 1e-3 * np.linalg.norm(gradient), (update, name)


def test_names_that_would_be_code_are_data_and_initial_values_are_forgotten_afterwards():
    program = lower(hostile(np.random.default_rng(3)))
    with opened(program) as engine:
        assert_initial_values_are_forgotten(engine, program)
