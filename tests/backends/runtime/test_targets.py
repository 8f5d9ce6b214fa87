"""Targets of composed losses in a session: accepted, measured and refused."""

import math

import numpy as np
import pytest

import snnc
from snnc.backends.runtime.errors import DataShapeError, DataTypeError, LabelRangeError

STEPS, SAMPLES = 6, 8
RANDOM = np.random.default_rng(4)
X = (RANDOM.random((SAMPLES, STEPS, 5)) < 0.5).astype(np.float32)
LABELS = RANDOM.integers(0, 3, SAMPLES)
LENGTHS = RANDOM.integers(1, STEPS + 1, SAMPLES)
STEP_VALUES = RANDOM.normal(size=(SAMPLES, STEPS, 6))


def session(loss):
    net = snnc.Sequential(5, snnc.Dense(7), snnc.LIF(), snnc.Dense(6), snnc.LI(), seed=2)
    return snnc.compile(net, "reference", loss=loss, optimizer="sgd:0.01")


def test_sequences_of_different_lengths_are_trained_and_measured_by_their_own_steps():
    targets = np.column_stack([LABELS, LENGTHS])
    other = X * (np.arange(STEPS)[None, :, None] < LENGTHS[:, None, None])
    losses = []
    for x in (X, other):
        with session("ce_mean_membrane:classes=3,lengths") as made:
            history = made.fit(x, targets, epochs=2, batch=4, validation=(x, targets))
            losses.append((history.losses, history.validation[-1].accuracy, made.evaluate(x, targets)))
            assert history.validation[-1].accuracy == made.evaluate(x, targets)
    assert losses[0] == losses[1]


def test_regression_reports_its_loss_and_no_accuracy():
    with session("mse_membrane:targets=step_values") as made:
        history = made.fit(X, STEP_VALUES, epochs=3, batch=4, validation=(X, STEP_VALUES))
        assert history.losses[-1] < history.losses[0]
        assert math.isnan(history.validation[-1].accuracy)
        with pytest.raises(DataTypeError, match="accuracy is not defined"):
            made.evaluate(X, STEP_VALUES)


@pytest.mark.parametrize(
    ("loss", "targets", "error"),
    [
        ("ce_count:lengths", LABELS, DataShapeError),
        ("ce_count:lengths", np.column_stack([LABELS, LENGTHS + STEPS]), LabelRangeError),
        ("ce_count:lengths", np.column_stack([LABELS + 6, LENGTHS]), LabelRangeError),
        ("ce_membrane:targets=step_classes", LABELS, DataShapeError),
        ("ce_membrane:targets=step_classes", np.full((SAMPLES, STEPS), 6), LabelRangeError),
        ("ce_membrane:targets=step_classes", np.zeros((SAMPLES, STEPS)), DataTypeError),
        ("mse_membrane:targets=step_values", STEP_VALUES[:, 1:], DataShapeError),
        ("mse_mean_membrane:targets=values", STEP_VALUES[:, 0, 1:], DataShapeError),
        ("mse_mean_membrane:targets=values", STEP_VALUES[:, 0] + np.inf, DataTypeError),
        ("ce_count:classes=3", LABELS + 3, LabelRangeError),
    ],
)
def test_targets_that_do_not_fit_are_refused(loss, targets, error):
    with session(loss) as made, pytest.raises(error):
        made.fit(X, targets)
