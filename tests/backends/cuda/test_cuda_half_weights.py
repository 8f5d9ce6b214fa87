"""Weights with float16 values in a CUDA program: rounded as on the reference; refused options."""

import numpy as np
import pytest
from cpu_projects import data
from cuda_projects import opened
from indexed_nets import convolutional, sparse_recurrent
from nets import recurrent
from one_to_one_nets import one_to_one

import snnc
from snnc.backends.cuda.errors import HalfTogetherError
from snnc.backends.reference.engine import ReferenceEngine
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import SGD, Adam
from snnc.compiler.losses.weight_rounding import REMAINDER, WeightRounding, nearest
from snnc.compiler.lowering.lower import lower

CASES = [
    (recurrent, "stochastic", SGD(0.05)),
    (convolutional, "stochastic", SGD(0.05)),
    (one_to_one, "nearest", SGD(0.05, 0.9)),
    (sparse_recurrent, "master", Adam(1e-3)),
]


@pytest.mark.representative("convolutional-*", "sparse_recurrent-*")
@pytest.mark.parametrize(("make", "kind", "optimizer"), CASES)
def test_updates_equal_those_of_the_reference(make, kind, optimizer):
    """A float32 update may differ in its last bits; it then may go to the other neighbour, which is rare."""
    options = {"loss": parse_loss("ce_mean_membrane"), "optimizer": optimizer, "loss_output": "y"}
    program = lower(make(np.random.default_rng(3)), half=("weights",), rounding=WeightRounding(kind, 5), **options)
    reference, halves = ReferenceEngine(program), [p.name for p in program.parameters.values() if p.half]
    with opened(program) as engine:
        differ = size = 0
        for update in range(3):
            batch = data(program, steps=5, batch=3, seed=update)
            assert engine.train_batch(*batch, 0.01) == pytest.approx(reference.train_batch(*batch, 0.01), rel=1e-4)
            found, wanted = engine.get_parameters(), reference.get_parameters()
            for name in halves:
                np.testing.assert_array_equal(found[name], nearest(found[name]))
                np.testing.assert_allclose(found[name], wanted[name], rtol=2**-9, atol=2e-5, err_msg=name)
                differ, size = differ + int((found[name] != wanted[name]).sum()), size + found[name].size
            reference.set_optimizer(engine.get_optimizer())
            for name, value in found.items():
                reference._parameters[name][...] = value
        assert differ <= 5e-3 * size
        given = {name: value + 1e-5 for name, value in found.items()}
        engine.set_parameters(given)
        reference.set_parameters(given)
        for name, value in reference.get_parameters().items():
            np.testing.assert_array_equal(engine.get_parameters()[name], value)
        moments = engine.get_optimizer().moments
        assert (kind == "master") == (REMAINDER in moments)
        assert not any(rest.any() for rest in moments.get(REMAINDER, {}).values())


def test_history_and_deltas_alone_are_refused():
    for half in ("history", "weights,deltas"):
        with pytest.raises(HalfTogetherError, match="precision='float16'"):
            snnc.compile(recurrent(np.random.default_rng(3)), target="cuda", steps=9, loss="ce_count", optimizer="adam", half=half)
