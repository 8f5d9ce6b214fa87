"""Losses as in PyTorch and snnTorch, by snnc's loss texts: an independent implementation, sample by sample, for outputs [T, B, n]."""

import re

import numpy as np
import snntorch.functional as theirs
from frameworks import torch
from torch.nn.functional import cross_entropy, mse_loss, one_hot

STATISTICS = {
    "count": lambda y: y.sum(0),
    "rate": lambda y: y.mean(0),
    "mean_membrane": lambda y: y.mean(0),
    "max_membrane": lambda y: y.max(0)[0],
    "last_membrane": lambda y: y[-1],
}
OF_TERMS = {"count": "count", "mean": "mean_membrane", "max": "max_membrane", "last": "last_membrane"}
"""Statistics of equations, by their names in losses."""


def membranes(name):
    """Return whether a loss of that name reads membranes."""
    return "membrane" in name or (name.startswith("equation") and "port=spikes" not in name)


def _options(text):
    name, _, options = text.partition(":")
    found = dict(option.partition("=")[::2] for option in options.split(",") if option)
    return name, found


def _mean_over_samples(y, target, lengths, each):
    ends = [y.shape[0]] * y.shape[1] if lengths is None else [int(n) for n in lengths]
    return torch.stack([each(y[:end, b : b + 1], target[b : b + 1]).reshape(()) for b, end in enumerate(ends)]).mean()


def _of_classes(criterion, name):
    """Return the loss of one sample [T, 1, n] whose target is a class."""
    known = {
        ("ce", "count"): theirs.ce_count_loss(),
        ("ce", "max_membrane"): theirs.ce_max_membrane_loss(),
        ("ce", "first_spike"): theirs.ce_temporal_loss(),
        ("mse", "count"): theirs.mse_count_loss(),
        # snnTorch computes the same in float32 for any input type.
        **dict.fromkeys([("mse", "membrane"), ("mse", "spikes")], lambda y, t: ((y - one_hot(t, y.shape[2])) ** 2).mean()),
        ("mse", "first_spike"): lambda y, t: _times(y, (1 - one_hot(t, y.shape[2])) * (y.shape[0] - 1)),
        **dict.fromkeys([("ce", "rate"), ("ce", "spikes"), ("ce", "membrane")], theirs.ce_rate_loss()),
    }
    if (criterion, name) in known:
        return known[criterion, name]
    statistic = STATISTICS[name]
    if criterion == "ce":
        return lambda y, t: cross_entropy(statistic(y), t)
    return lambda y, t: mse_loss(statistic(y), one_hot(t, y.shape[2]).to(y.dtype))


def _times(y, times):
    return theirs.mse_temporal_loss(target_is_time=True)(y, times.to(y.dtype))


def _of_values(name):
    if name == "first_spike":
        return _times
    if name in ("spikes", "membrane"):
        return lambda y, t: ((y - t) ** 2).mean()
    # snnTorch divides the error of counts by the number of steps.
    return lambda y, t: mse_loss(STATISTICS[name](y), t) / (y.shape[0] if name == "count" else 1)


def _of_equation(statistic):
    """``abs(x - y)`` of numbers."""
    if statistic == "steps":
        return lambda y, t: (y - t).abs().mean()
    if statistic == "first_spike":
        return lambda y, t: (_FirstSpike.apply(y) - t).abs().mean()
    return lambda y, t: (STATISTICS[OF_TERMS[statistic]](y) - t).abs().mean()


class _FirstSpike(torch.autograd.Function):
    """The time of the first spike, or the last step if there is none; gradient as in snnTorch: -1 to the output at that step."""

    @staticmethod
    def forward(ctx, y):
        fired = y > 0
        at = torch.where(fired.any(0), fired.to(torch.int64).argmax(0), y.shape[0] - 1)
        ctx.save_for_backward(at, y)
        return at.to(y.dtype)

    @staticmethod
    def backward(ctx, gradient):
        at, y = ctx.saved_tensors
        return torch.zeros_like(y).scatter_(0, at[None], -gradient[None])


def loss_of(text, y, target):
    """Return the loss of the outputs [T, B, n], by a text without regularisers."""
    head, options = _options(text)
    target = torch.as_tensor(target)
    lengths = None
    if "lengths" in options:
        target, lengths = target[:, :-1], target[:, -1]
        target = target if "targets" in options else target[:, 0]
    if "classes" in options:
        group = y.shape[2] // int(options["classes"])
        y = y.reshape(y.shape[0], y.shape[1], -1, group).sum(3)
        if head == "mse_count":
            wanted = one_hot(target, y.shape[2]) * y.shape[0] * group
            return mse_loss(y.sum(0), wanted.to(y.dtype)) / y.shape[0]
    kind = options.get("targets", "class")
    if kind == "step_classes":
        known = target >= 0
        if head == "ce_membrane":
            each = [cross_entropy(y[:, b][known[b]], target[b][known[b]]) for b in range(y.shape[1])]
        else:
            each = [mse_loss(y[:, b][known[b]], one_hot(target[b][known[b]], y.shape[2]).to(y.dtype)) for b in range(y.shape[1])]
        return torch.stack(each).mean()
    target = target.to(y.dtype) if kind != "class" else target
    if kind == "step_values":
        y = y.transpose(0, 1)
        return mse_loss(y, target) if head.startswith("mse") else (y - target).abs().mean()
    if head.startswith("equation"):
        return _mean_over_samples(y, target, lengths, _of_equation(options["statistic"]))
    criterion, _, name = head.partition("_")
    each = _of_values(name) if kind == "values" else _of_classes(criterion, name)
    return _mean_over_samples(y, target, lengths, each)


def regularisation(text, spikes, membrane):
    """Return the value of a regulariser such as ``upper_rate:of=hidden,bound=0.2``."""
    head, options = _options(text)
    kind, _, read = head.partition("_")
    x, bound = spikes.mean(0) if read == "rate" else membrane, float(options.get("bound", 0))
    each = {
        # A rate is not negative; its derivative is the same for silent neurons as for others.
        "l1": x if read == "rate" else x.abs(),
        "l2": x * x,
        "upper": (x - bound).clamp(min=0) ** 2,
        "lower": (bound - x).clamp(min=0) ** 2,
    }
    return each[kind].mean()


def whole_loss(text, hidden_spikes, hidden_membrane, spikes, membrane, target):
    """Return the loss of a row of the table: the loss of the outputs, plus regularisers of the hidden population."""
    first, *others = re.split(r" \+ ", text)
    value = loss_of(first, membrane if membranes(first) else spikes, target)
    for other in others:
        factor, _, name = other.partition("*")
        value = value + float(factor) * regularisation(name, hidden_spikes, hidden_membrane)
    return value


def targets_for(text, random, steps, batch, outputs):
    """Return targets of the kind that a text names, all of which count, except that some steps have no class."""
    options = _options(re.split(r" \+ ", text)[0])[1]
    kind, lengths = options.get("targets", "class"), "lengths" in options
    classes = int(options.get("classes", outputs))
    shape = {"class": (batch, 1), "step_classes": (batch, steps), "values": (batch, outputs), "step_values": (batch, steps, outputs)}[kind]
    if kind.endswith("values"):
        found = random.random(shape).astype(np.float32) * 3
    else:
        found = random.integers(-1 if kind == "step_classes" else 0, classes, shape)
    if lengths:
        return np.column_stack([found, random.integers(2, steps + 1, batch)]).astype(found.dtype)
    return found[:, 0] if kind == "class" else found
