"""Losses compared with PyTorch's autograd and snnTorch."""

import numpy as np
import pytest
import snntorch.functional
import torch

from snnc.compiler.errors import UnknownLossError
from snnc.compiler.losses import (
    LOSSES,
    CrossEntropyCount,
    CrossEntropyMaxMembrane,
    CrossEntropyMeanMembrane,
    CrossEntropyRate,
    MeanSquaredCount,
    parse_loss,
)

CASES = [
    (CrossEntropyCount(), snntorch.functional.ce_count_loss()),
    (CrossEntropyRate(), lambda y, t: torch.stack([torch.nn.functional.cross_entropy(step, t) for step in y]).mean()),
    (CrossEntropyRate(), snntorch.functional.ce_rate_loss()),
    (CrossEntropyMaxMembrane(), snntorch.functional.ce_max_membrane_loss()),
    (CrossEntropyMeanMembrane(), lambda y, t: torch.nn.functional.cross_entropy(y.mean(0), t)),
    (MeanSquaredCount(), snntorch.functional.mse_count_loss()),
    (MeanSquaredCount(0.77, 0.13), snntorch.functional.mse_count_loss(0.77, 0.13)),
]


def outputs(spikes, dtype=np.float64):
    random = np.random.default_rng(1)
    values = random.random((9, 5, 4)) < 0.4 if spikes else random.normal(size=(9, 5, 4)) * 3
    return values.astype(dtype), random.integers(0, 4, 5)


@pytest.mark.parametrize("spikes", [True, False])
@pytest.mark.parametrize(("loss", "wanted"), CASES, ids=lambda v: str(getattr(v, "__name__", v)))
def test_value_and_gradient_are_those_of_the_frameworks(loss, wanted, spikes):
    """Spikes have ties over time, which the maximum must break as PyTorch does."""
    y, target = outputs(spikes)
    theirs = torch.tensor(y, requires_grad=True)
    value = wanted(theirs, torch.tensor(target)).squeeze()
    value.backward()
    found, gradient = loss.value_and_gradient(y, target)
    assert found == pytest.approx(value.item(), rel=1e-6)
    np.testing.assert_allclose(gradient, theirs.grad.numpy(), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("kind", LOSSES)
def test_shape_and_type_stay(kind):
    y, target = outputs(True, np.float32)
    before = y.copy()
    _, gradient = kind().value_and_gradient(y, target)
    assert (gradient.shape, gradient.dtype) == (y.shape, y.dtype)
    assert kind().scores(y).shape == (5, 4)
    np.testing.assert_array_equal(y, before)


@pytest.mark.parametrize("kind", LOSSES)
def test_large_values_do_not_overflow(kind):
    y, target = outputs(False, np.float32)
    value, gradient = kind().value_and_gradient(y * 1e4, target)
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()


@pytest.mark.parametrize(
    ("text", "loss"),
    [
        ("ce_count", CrossEntropyCount()),
        ("ce_count_loss", CrossEntropyCount()),
        ("ce-rate", CrossEntropyRate()),
        ("mean membrane", CrossEntropyMeanMembrane()),
        (" Max Membrane ", CrossEntropyMaxMembrane()),
        ("count", CrossEntropyCount()),
        ("mse_count", MeanSquaredCount(1.0, 0.0)),
        ("mse_count:0.8,0.2", MeanSquaredCount(0.8, 0.2)),
        ("mse_count:0.8", MeanSquaredCount(0.8, 0.0)),
    ],
)
def test_names_are_read(text, loss):
    assert parse_loss(text) == loss


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nonsense", "use ce_count, ce_rate"),
        ("mse_count:a,b", "'a,b' instead of numbers"),
        ("mse_count:1,2,3", "3 number"),
        ("ce_count:1", "1 number"),
        ("mse_count:1.5", "1.5"),
        ("mse_count:nan", "nan"),
    ],
)
def test_other_names_are_refused(text, message):
    with pytest.raises(UnknownLossError, match=message):
        parse_loss(text)
