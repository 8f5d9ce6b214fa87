"""Composed losses: values and gradients as in snnTorch and PyTorch, texts that are parsed back, and refusals."""

import composed_losses
import numpy as np
import pytest
import snntorch.functional
import torch
from torch.nn.functional import cross_entropy, mse_loss

from snnc.compiler.errors import LossOutputError, UnknownLossError
from snnc.compiler.losses import CrossEntropyCount, MeanSquaredCount, parse_loss
from snnc.compiler.losses.composed import Composed
from snnc.compiler.losses.text import data_text
from snnc.compiler.lowering.lower import lower

STEPS, BATCH, CLASSES = 9, 5, 6
RANDOM = np.random.default_rng(1)
SPIKES = (RANDOM.random((STEPS, BATCH, CLASSES)) < 0.3).astype(np.float64)
MEMBRANES = RANDOM.normal(size=(STEPS, BATCH, CLASSES))
LABELS = RANDOM.integers(0, CLASSES, BATCH)
STEP_LABELS = RANDOM.integers(-1, CLASSES, (BATCH, STEPS))
VALUES = RANDOM.normal(size=(BATCH, CLASSES))
STEP_VALUES = RANDOM.normal(size=(BATCH, STEPS, CLASSES))
LENGTHS = np.array([1, 9, 4, 7, 2])
ONE_HOT = torch.nn.functional.one_hot(torch.tensor(LABELS), CLASSES).double()


def of_steps_that_count(y, labels):
    """The mean over samples of that over their steps, as PyTorch's `ignore_index` counts them in each sample."""
    return torch.stack([cross_entropy(y[:, b], labels[b], ignore_index=-1) for b in range(BATCH)]).mean()


def over_lengths(criterion):
    """The mean over samples of what `criterion` makes of their own steps alone."""
    return lambda y, target: torch.stack([criterion(y[:n, b : b + 1], target[b : b + 1]) for b, n in enumerate(LENGTHS)]).mean()


def first_spikes(on, off):
    """Their loss takes times: it clamps targets of classes from below, so that its own default of the others, -1, is 0 there."""
    times = np.where(np.eye(CLASSES)[LABELS] > 0, on, off)
    return lambda y, _: snntorch.functional.mse_temporal_loss(target_is_time=True)(y, torch.tensor(times, dtype=torch.float64))


CASES = {
    "ce_last_membrane": (MEMBRANES, LABELS, lambda y, t: cross_entropy(y[-1], t)),
    "ce_membrane": (MEMBRANES, LABELS, snntorch.functional.ce_rate_loss()),
    "ce_first_spike": (SPIKES, LABELS, snntorch.functional.ce_temporal_loss()),
    "ce_first_spike:inverse=reciprocal": (SPIKES, LABELS, snntorch.functional.ce_temporal_loss(inverse="reciprocal")),
    "mse_first_spike": (SPIKES, LABELS, first_spikes(0, -1)),
    "mse_first_spike:on=2,off=5": (SPIKES, LABELS, snntorch.functional.mse_temporal_loss(on_target=2, off_target=5)),
    "mse_rate:on=0.7,off=0.1": (SPIKES, LABELS, lambda y, _: mse_loss(y.mean(0), 0.1 + 0.6 * ONE_HOT)),
    "mse_mean_membrane": (MEMBRANES, LABELS, lambda y, _: mse_loss(y.mean(0), ONE_HOT)),
    "mse_max_membrane:on=2": (MEMBRANES, LABELS, lambda y, _: mse_loss(y.amax(0), 2 * ONE_HOT)),
    "mse_last_membrane": (MEMBRANES, LABELS, lambda y, _: mse_loss(y[-1], ONE_HOT)),
    "mse_membrane:on=1.5,off=0.2": (MEMBRANES, LABELS, snntorch.functional.mse_membrane_loss(on_target=1.5, off_target=0.2)),
    "ce_membrane:targets=step_classes": (MEMBRANES, STEP_LABELS, of_steps_that_count),
    "mse_membrane:targets=step_values": (MEMBRANES, STEP_VALUES, lambda y, t: mse_loss(y.transpose(0, 1), t)),
    "mse_last_membrane:targets=values": (MEMBRANES, VALUES, lambda y, t: mse_loss(y[-1], t)),
    "mse_membrane:targets=values": (MEMBRANES, VALUES, lambda y, t: ((y - t) ** 2).mean()),
    "ce_count:lengths": (SPIKES, LABELS, over_lengths(snntorch.functional.ce_count_loss())),
    "ce_membrane:lengths": (MEMBRANES, LABELS, over_lengths(snntorch.functional.ce_rate_loss())),
    "ce_max_membrane:lengths": (MEMBRANES, LABELS, over_lengths(snntorch.functional.ce_max_membrane_loss())),
    "ce_last_membrane:lengths": (MEMBRANES, LABELS, over_lengths(lambda y, t: cross_entropy(y[-1], t))),
    "ce_first_spike:lengths": (SPIKES, LABELS, over_lengths(snntorch.functional.ce_temporal_loss())),
    "mse_count:lengths,on=0.8": (SPIKES, LABELS, over_lengths(snntorch.functional.mse_count_loss(0.8))),
    "mse_mean_membrane:targets=values,lengths": (MEMBRANES, VALUES, over_lengths(lambda y, t: mse_loss(y.mean(0), t))),
    "equation[abs(x - y)]:statistic=last,targets=values": (MEMBRANES, VALUES, lambda y, t: (y[-1] - t).abs().mean()),
    "equation[log(1 + exp(-(2*y - 1)*x))]:statistic=mean": (
        MEMBRANES,
        LABELS,
        lambda y, _: torch.nn.functional.binary_cross_entropy_with_logits(y.mean(0), ONE_HOT),
    ),
    "2*ce_count + 0.5*l1_rate": (SPIKES, LABELS, lambda y, t: 2 * cross_entropy(y.sum(0), t) + 0.5 * y.mean()),
    "ce_membrane + 3*l2_membrane + 2*l1_membrane": (
        MEMBRANES,
        LABELS,
        lambda y, t: snntorch.functional.ce_rate_loss()(y, t) + 3 * (y * y).mean() + 2 * y.abs().mean(),
    ),
    "ce_count + upper_rate:bound=0.25 + lower_rate:bound=0.5": (
        SPIKES,
        LABELS,
        lambda y, t: cross_entropy(y.sum(0), t) + ((y.mean(0) - 0.25).clamp(0) ** 2 + (0.5 - y.mean(0)).clamp(0) ** 2).mean(),
    ),
    "ce_membrane + upper_membrane:bound=-0.2": (
        MEMBRANES,
        LABELS,
        lambda y, t: snntorch.functional.ce_rate_loss()(y, t) + ((y + 0.2).clamp(0) ** 2).mean(),
    ),
}


@pytest.mark.parametrize("text", CASES)
def test_value_and_gradient_are_those_of_the_frameworks(text):
    y, target, wanted = CASES[text]
    theirs = torch.tensor(y, requires_grad=True)
    value = wanted(theirs, torch.tensor(target)).squeeze()
    value.backward()
    loss = parse_loss(text)
    if loss.lengths:
        target = np.column_stack([target, LENGTHS])
    found, gradient = loss.value_and_gradient(y, target)
    assert found == pytest.approx(value.item(), rel=1e-6)
    np.testing.assert_allclose(gradient, theirs.grad.numpy(), rtol=1e-6, atol=1e-8)


def test_numbers_that_are_not_known_do_not_count():
    values = np.where(RANDOM.random(STEP_VALUES.shape) < 0.4, np.nan, STEP_VALUES)
    theirs = torch.tensor(MEMBRANES, requires_grad=True)
    known = torch.tensor(~np.isnan(values))
    each = [((theirs[:, b][known[b]] - torch.tensor(values[b])[known[b]]) ** 2).mean() for b in range(BATCH)]
    torch.stack(each).mean().backward()
    _, gradient = parse_loss("mse_membrane:targets=step_values").value_and_gradient(MEMBRANES, values)
    np.testing.assert_allclose(gradient, theirs.grad.numpy(), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("text", composed_losses.ALL)
def test_texts_read_back(text):
    loss = parse_loss(text)
    assert isinstance(loss, Composed)
    assert parse_loss(data_text(loss)) == loss


def test_a_lowered_loss_reads_back_with_its_outputs():
    loss = composed_losses.program_of(composed_losses.SUMS[0]).loss
    assert loss.slices == ((0, 4), (4, 14), (14, 24))
    assert parse_loss(data_text(loss)) == loss


def test_population_codes_are_lowered_to_the_loss_of_the_classes():
    program = composed_losses.program_of("ce_count:classes=4")
    assert program.loss == CrossEntropyCount()
    assert next(o.shape for o in program.outputs if o.id == program.loss_output) == (4,)
    assert composed_losses.program_of("mse_count:on=0.8,classes=12").loss == MeanSquaredCount(0.8, 0.0)


@pytest.mark.parametrize(
    "text",
    [
        "ce_everything:classes=2",
        "ce_count:classes=0",
        "ce_count:classes=many",
        "ce_count:colour=red",
        "ce_count:bound=1",
        "ce_count:targets=values",
        "ce_count:targets=step_classes",
        "ce_membrane:targets=step_classes,lengths",
        "mse_count:on=1.5,classes=2",
        "ce_first_spike:inverse=square",
        "equation[x - z]:statistic=mean",
        "equation[y]:statistic=mean",
        "equation[__import__('os')]:statistic=mean",
        "equation[x - y]:statistic=median",
        "upper_rate",
        "l1_rate:bound=2",
        "ce_count:classes=2 + mse_mean_membrane:targets=values",
        "x*ce_count",
        "{damaged",
        '{"terms": [{"criterion": 3}]}',
    ],
)
def test_texts_that_are_no_loss_are_refused(text):
    with pytest.raises(UnknownLossError):
        parse_loss(text)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("ce_count:classes=5", LossOutputError),
        ("ce_count + l1_rate:of=nobody", LossOutputError),
        ("ce_count + l1_rate:of=hidden.w", LossOutputError),
        ("l1_rate:of=hidden", UnknownLossError),
    ],
)
def test_losses_that_no_output_fits_are_refused(text, error):
    with pytest.raises(error):
        lower(composed_losses.network(), loss=parse_loss(text))
