"""Whole programs whose products are computed by warpgroups, with the kernels on the CPU."""

import shutil
from contextlib import contextmanager

import numpy as np
import pytest
from cpu_projects import assert_same_training, data
from cuda_projects import SPLIT, stacked

from snnc.backends.cuda.build import WARPGROUPS, build_host_check
from snnc.backends.cuda.emit import emit_cuda
from snnc.backends.cuda.engine import CudaEngine
from snnc.compiler.losses.optimizers import SGD


@contextmanager
def opened_with_warpgroups(program, folder, precision="float32"):
    """Open a program from a new copy of its library, in which no trial has been made."""
    project = emit_cuda(program, folder / "project", precision=precision)
    engine = CudaEngine(shutil.copy(build_host_check(project), folder / "copy.so"), project, 2, 8)
    yield engine
    engine.close()


def test_numbers_are_those_of_the_reference(tmp_path, monkeypatch):
    monkeypatch.setenv(WARPGROUPS, "1")
    program = stacked(40, 48, optimizer=SGD(1e-2))
    with opened_with_warpgroups(program, tmp_path) as engine:
        assert_same_training(engine, program, updates=2, tolerance=SPLIT)
        assert engine.profile()["products"] == "warpgroups"


@pytest.mark.representative("float32")
@pytest.mark.parametrize("precision", ["float32", "tf32", "bfloat16", "float16"])
def test_late_copies_and_products_give_the_same_bits(precision, tmp_path, monkeypatch):
    monkeypatch.setenv(WARPGROUPS, "1")
    program, found = stacked(40, 48, optimizer=SGD(1e-2)), []
    for order in ("forwards", "backwards"):
        monkeypatch.setenv("SNNC_HOST_ORDER", order)
        (tmp_path / order).mkdir()
        with opened_with_warpgroups(program, tmp_path / order, precision) as engine:
            losses = [engine.train_batch(*data(program, 9, 5, seed=seed), 1e-2) for seed in range(2)]
            assert engine.profile()["products"] == "warpgroups"
            found.append((losses, engine.get_parameters()))
    assert found[0][0] == found[1][0]
    for name, value in found[0][1].items():
        np.testing.assert_array_equal(value, found[1][1][name], err_msg=name)
