"""Weights with float16 values on the CPU: rounded as on the reference, for any number of threads; refused options."""

import numpy as np
import pytest
from cpu_projects import data, opened
from indexed_nets import convolutional, sparse_recurrent
from nets import recurrent
from one_to_one_nets import one_to_one

import snnc
from snnc.backends.reference.engine import ReferenceEngine
from snnc.compiler.errors import HalfTargetError
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import SGD, Adam
from snnc.compiler.losses.weight_rounding import REMAINDER, WeightRounding, nearest
from snnc.compiler.lowering.lower import lower

CASES = [
    (recurrent, "stochastic", SGD(0.05), 2),
    (recurrent, "nearest", SGD(0.05, 0.9), 3),
    (recurrent, "master", Adam(1e-3), 1),
    (convolutional, "stochastic", SGD(0.05), 2),
    (sparse_recurrent, "stochastic", SGD(0.05), 1),
    (one_to_one, "stochastic", SGD(0.05), 1),
    (convolutional, "master", Adam(1e-3), 2),
]


@pytest.mark.representative("convolutional-stochastic-*", "recurrent-master-*")
@pytest.mark.parametrize(("make", "kind", "optimizer", "threads"), CASES)
def test_updates_equal_those_of_the_reference(make, kind, optimizer, threads):
    """A float32 update may differ in its last bits; it then may go to the other neighbour, which is rare."""
    options = {"loss": parse_loss("ce_mean_membrane"), "optimizer": optimizer, "loss_output": "y"}
    program = lower(make(np.random.default_rng(3)), half=("weights",), rounding=WeightRounding(kind, 5), **options)
    reference, halves = ReferenceEngine(program), [p.name for p in program.parameters.values() if p.half]
    with opened(program, threads=threads) as engine:
        differ = size = 0
        for update in range(3):
            batch = data(program, seed=update)
            assert engine.train_batch(*batch, 0.01) == pytest.approx(reference.train_batch(*batch, 0.01), rel=1e-5)
            found, wanted = engine.get_parameters(), reference.get_parameters()
            for name in halves:
                np.testing.assert_array_equal(found[name], nearest(found[name]))
                np.testing.assert_allclose(found[name], wanted[name], rtol=2**-9, atol=1e-5, err_msg=name)
                differ, size = differ + int((found[name] != wanted[name]).sum()), size + found[name].size
            reference.set_optimizer(engine.get_optimizer())
            for name, value in found.items():
                reference._parameters[name][...] = value
        assert differ <= 2e-3 * size
        given = {name: value + 1e-5 for name, value in found.items()}
        engine.set_parameters(given)
        reference.set_parameters(given)
        for name, value in reference.get_parameters().items():
            np.testing.assert_array_equal(engine.get_parameters()[name], value)
        assert (kind == "master") == (REMAINDER in engine.get_optimizer().moments)


def test_what_a_target_does_not_keep_as_float16_is_refused():
    for target, half in (("cpu", "deltas"), ("poptorch", "weights"), ("poptorch", "weights:stochastic,history")):
        with pytest.raises(HalfTargetError, match=half.partition(":")[0].partition(",")[0]):
            snnc.compile(recurrent(np.random.default_rng(3)), target=target, steps=9, loss="ce_count", optimizer="adam", half=half)


def test_a_program_without_training_rounds_the_weights_that_it_is_given():
    rng = np.random.default_rng(3)
    with snnc.compile(recurrent(rng), target="cpu", half="weights") as session, snnc.compile(session.graph, half="weights") as reference:
        for given in (session.state_dict(), {name: value + 1e-5 for name, value in session.state_dict().items()}):
            for each in (session, reference):
                each.load_state_dict(given)
            for name, value in reference.state_dict().items():
                np.testing.assert_array_equal(session.state_dict()[name], value)
                assert not name.endswith("weight") or (value == nearest(value)).all()
