"""Updates with every optimiser option compared with torch.optim and torch.nn.utils: reference, processor and CUDA."""

import cpu_projects
import cuda_projects
import numpy as np
import pytest
from cpu_projects import data
from nets import recurrent
from torch_updates import OPTIMIZERS, UPDATES, largest_difference
from wide import examples

from snnc.backends.reference.engine import ReferenceEngine
from snnc.compiler.losses import parse_loss
from snnc.compiler.lowering.lower import lower

CLOSE = 1e-4
QUICK = ("nesterov", "rmsprop all", "clip norm", "groups", "l1 of groups")
"""Cases of the compiled targets that together hold every kind of statement."""


def program_of(case):
    return lower(recurrent(np.random.default_rng(3)), loss=parse_loss("ce_mean_membrane"), optimizer=OPTIMIZERS[case], loss_output="y")


def batches(program):
    return (data(program, seed=step) for step in range(examples(8, UPDATES)))


def wide_but(quick):
    return [pytest.param(case, marks=() if case in quick else pytest.mark.wide) for case in OPTIMIZERS]


@pytest.mark.parametrize("case", OPTIMIZERS)
def test_the_reference_updates_as_torch_does(case):
    program = program_of(case)
    assert largest_difference(ReferenceEngine(program), program, batches(program)) < CLOSE


@pytest.mark.representative("groups", "clip norm")
@pytest.mark.parametrize("case", wide_but(QUICK))
def test_the_processor_updates_as_torch_does(case):
    program = program_of(case)
    with cpu_projects.opened(program) as engine:
        assert largest_difference(engine, program, batches(program)) < CLOSE


@pytest.mark.wide
@pytest.mark.parametrize("case", wide_but(QUICK[2:3]))
def test_cuda_updates_as_torch_does(case):
    program = program_of(case)
    with cuda_projects.opened(program) as engine:
        assert largest_difference(engine, program, batches(program)) < CLOSE
