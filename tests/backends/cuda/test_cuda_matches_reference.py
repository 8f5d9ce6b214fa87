"""The bodies of the CUDA kernels, run on the processor, against the reference."""

import numpy as np
import pytest
from cpu_projects import assert_same_records, assert_same_training, data
from cuda_projects import CASES, opened, program_of
from poplar_projects import hostile

from snnc.backends.reference.engine import ReferenceEngine
from snnc.compiler.lower import lower

SHARINGS = ((1, 8), (2, 8), (4, 1))
"""Blocks of a team and samples of a tile."""


@pytest.mark.parametrize("name", CASES)
def test_records_and_training_steps_equal_those_of_the_reference(name):
    at = list(CASES).index(name)
    program = program_of(name)
    with opened(program, *SHARINGS[at % 3]) as engine:
        for density in (0.4, 0.8):
            inputs, _ = data(program, density=density)
            found = engine.forward(inputs, {})
            assert_same_records(found, ReferenceEngine(program).forward(inputs, {}))
        assert any(record.any() for record in found.values())
        assert_same_training(engine, program)


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
