"""A project with float16 numbers that runs on another target: the same weights, states and spikes."""

from pathlib import Path

import numpy as np
import pytest
from option_cells import MACHINES

import snnc
from snnc.driver.compiling import compile_to_folder, session_for
from snnc.options.compile_options import options

STEPS, BATCH = 6, 4
TRAINS = {"loss": "ce_mean_membrane", "optimizer": "sgd:0.1"}
CASES = {
    "history": TRAINS | {"precision": "float16"},
    "weights": TRAINS | {"half": "weights:stochastic"},
    "weights and states": TRAINS | {"half": "weights,states,history"},
    "run": {"precision": "float16"},
    "run, states": {"half": "states"},
}
"""Options of the project: with a loss, precision float16 rounds the history; without one, weights."""
ROUNDED = {"weights", "weights and states", "run"}
"""Cases whose weights are float16 numbers."""


def net():
    return snnc.Sequential(12, snnc.Dense(20), snnc.LIF(beta=0.9), snnc.Dense(5), snnc.LI(), name="small", seed=7)


@pytest.fixture
def x():
    return (np.random.default_rng(4).random((STEPS, BATCH, 12)) < 0.5).astype(np.float32)


@pytest.fixture(autouse=True)
def machine(tmp_path, monkeypatch):
    (tmp_path / "one.toml").write_text(MACHINES["one.toml"])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SNNC_CUDA_ON_HOST", "1")


def ran(session, x):
    (output,) = session.run(x).values()
    return output


def project(target, case):
    compile_to_folder(net().graph(), options(target, steps=STEPS, batch=BATCH, **CASES[case]), Path("project"))
    return Path("project")


def wanted(case, x):
    """The numbers of the reference, compiled with the options of the project."""
    with snnc.compile(net(), "reference", steps=STEPS, batch=BATCH, **CASES[case]) as session:
        return ran(session, x)


@pytest.mark.representative("weights", "weights and states", "run")
@pytest.mark.parametrize("case", CASES)
def test_the_reference_runs_the_project_of_a_machine(case, x):
    with session_for(project("one.toml", case), {"input": x}, target="reference") as session:
        np.testing.assert_array_equal(ran(session, x), wanted(case, x))


@pytest.mark.representative("cpu-run", "one.toml-weights")
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("target", ["cpu", "cuda", "one.toml"])
def test_each_target_runs_the_project_of_the_reference(target, case, x):
    with session_for(project("reference", case), {"input": x}, target=target) as session:
        np.testing.assert_allclose(ran(session, x), wanted(case, x), rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize(("target", "precision"), [("cpu", "bfloat16"), ("cuda", "tf32"), ("cuda", "float16")])
def test_rounded_products_are_announced_to_differ(target, precision, x):
    compile_to_folder(net().graph(), options(target, precision=precision), Path("project"))
    with (
        pytest.warns(UserWarning, match=f"{precision}.*'reference' they are float32"),
        session_for(Path("project"), {"input": x}, target="reference") as session,
        snnc.compile(net(), "reference") as exact,
    ):
        np.testing.assert_array_equal(ran(session, x), ran(exact, x))


def test_the_roundings_change_the_numbers(x):
    """Otherwise the other tests could not fail."""
    with snnc.compile(net(), "reference", steps=STEPS) as session:
        exact = ran(session, x)
    for case in CASES:
        assert (np.abs(wanted(case, x) - exact).max() > 1e-5) == (case != "history"), case
