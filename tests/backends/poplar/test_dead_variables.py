"""The emitted program reads no dead data: variables that might share memory are overwritten as soon as they are dead."""

import numpy as np
import pytest
from poplar_projects import project
from test_poplar_matches_reference import assert_same_records
from windowed_nets import windowed


@pytest.fixture(autouse=True)
def _spoilt(monkeypatch):
    monkeypatch.setenv("SNNC_SPOIL_DEAD", "1")


@pytest.mark.parametrize("name", ["exact several inputs", "delayed"])
def test_training_and_inference_in_turns_need_nothing_dead(name):
    case = project(name)
    engine, reference = case.open(), case.reference()
    for seed in range(2):
        inputs, labels = case.data(seed)
        assert_same_records(engine.forward(inputs, {}), reference.forward(inputs, {}))
        assert engine.train_batch(inputs, labels, 1e-2) == pytest.approx(reference.train_batch(inputs, labels, 1e-2), rel=1e-4)
    wanted = reference.gradients()
    for name_, gradient in engine.gradients().items():
        assert np.linalg.norm(gradient - wanted[name_]) <= 1e-4 * np.linalg.norm(wanted[name_]), name_


@pytest.mark.wide
def test_gradients_in_windows_need_nothing_dead():
    assert windowed("two chips, further windows").worst_error() <= 1e-5
