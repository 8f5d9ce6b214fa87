"""Whole programs whose products are computed by warpgroups, with the kernels on the CPU."""

import numpy as np
import pytest
from cpu_projects import assert_same_training, data
from cuda_projects import SPLIT, opened, stacked

from snnc.backends.cuda.build import WARPGROUPS
from snnc.compiler.losses.optimizers import SGD


def test_numbers_are_those_of_the_reference(monkeypatch):
    monkeypatch.setenv(WARPGROUPS, "1")
    program = stacked(40, 48, optimizer=SGD(1e-2))
    with opened(program, 2, 8) as engine:
        assert_same_training(engine, program, updates=2, tolerance=SPLIT, steps=5, batch=3)
        assert engine.profile()["products"] == "warpgroups"


@pytest.mark.representative("float32")
@pytest.mark.parametrize("precision", ["float32", "tf32", "bfloat16", "float16"])
def test_late_copies_and_products_give_the_same_bits(precision, monkeypatch):
    monkeypatch.setenv(WARPGROUPS, "1")
    program, found = stacked(40, 48, optimizer=SGD(1e-2)), []
    for order in ("forwards", "backwards"):
        monkeypatch.setenv("SNNC_HOST_ORDER", order)
        with opened(program, 2, 8, precision) as engine:
            losses = [engine.train_batch(*data(program, 5, 3, seed=seed), 1e-2) for seed in range(2)]
            assert engine.profile()["products"] == "warpgroups"
            found.append((losses, engine.get_parameters()))
    assert found[0][0] == found[1][0]
    for name, value in found[0][1].items():
        np.testing.assert_array_equal(value, found[1][1][name], err_msg=name)
