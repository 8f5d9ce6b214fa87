"""Optimisers as data; they follow :mod:`torch.optim`, so that loss curves can be compared.

Their equations are in :mod:`snnc.compiler.losses.update_rules`, from which every target's code is printed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Final, TypeAlias

from snnc.compiler.losses.loss_scale import LossScale

NO_BOUND: Final = 3.4028234663852886e38
"""Bound of parameters that are not clipped: the largest float32 number."""
PART: Final = re.compile(r" (?:(?:from|to) )?part \d+")
"""Suffix that :mod:`snnc.compiler.tiles.partition.split` adds to the names of parts of a population."""


@dataclass(frozen=True)
class Group:
    """A group of parameters with its own update settings.

    Attributes
    ----------
    pattern
        Name of a parameter in ``state_dict``, or a pattern as in :mod:`fnmatch`: ``"*.bias"``, ``"hidden.*"``. The first group
        that matches a parameter applies.
    lr
        Factor on the learning rate.
    weight_decay
        Weight decay of the group; None: as in the optimiser.
    frozen
        Whether the parameters are fixed; their gradients are then not computed.
    l1, bound
        L1 factor and bound of the group; None: as in the optimiser.
    """

    pattern: str
    lr: float = 1.0
    weight_decay: float | None = None
    frozen: bool = False
    l1: float | None = None
    bound: float | None = None


@dataclass(frozen=True, kw_only=True)
class UpdateOptions:
    """Options shared by all optimisers.

    Attributes
    ----------
    weight_decay
        This factor times the parameters is added to their gradients; :class:`AdamW` instead subtracts the product, times the learning
        rate, from the parameters.
    clip_value
        Bound to which each element of the gradients is clipped, as in torch.nn.utils.clip_grad_value_.
    clip_norm
        Maximum Euclidean norm of all gradients together; larger gradients are scaled down, as in torch.nn.utils.clip_grad_norm_,
        after `clip_value`.
    groups
        Groups of parameters with their own settings.
    accumulate
        Whether machines with tiles reserve memory for gradients summed over several batches, one number per parameter; other targets can
        always accumulate.
    loss_scale
        Loss scaling, see :class:`~snnc.compiler.losses.loss_scale.LossScale`; None: no scaling.
    l1
        This factor times the signs of the parameters is added to their gradients, after clipping: the gradient of
        ``l1 * sum(abs(parameter))``.
    bound
        Parameters are clipped to [-bound, bound] after each update; None: they are not clipped.
    """

    weight_decay: float = 0.0
    clip_value: float | None = None
    clip_norm: float | None = None
    groups: tuple[Group, ...] = field(default=())
    accumulate: bool = False
    loss_scale: LossScale | None = None
    l1: float = 0.0
    bound: float | None = None


@dataclass(frozen=True)
class SGD(UpdateOptions):
    """Stochastic gradient descent, as in torch.optim.SGD: ``w -= lr*g`` or, with momentum, ``m = momentum*m + g; w -= lr*m``.

    With `nesterov`: ``w -= lr*(g + momentum*m)``.
    """

    lr: float = 1e-2
    momentum: float = 0.0
    name: str = "sgd"
    nesterov: bool = field(default=False, kw_only=True)


@dataclass(frozen=True)
class Adam(UpdateOptions):
    """Adam (Kingma & Ba, arXiv 1412.6980, algorithm 1, epsilon outside the root, as in torch.optim.Adam)."""

    lr: float = 1e-3
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    name: str = "adam"


@dataclass(frozen=True)
class AdamW(Adam):
    """Adam with decoupled weight decay, as in torch.optim.AdamW: each update also subtracts ``lr*weight_decay*w`` (arXiv 1711.05101)."""

    name: str = "adamw"
    weight_decay: float = field(default=1e-2, kw_only=True)


@dataclass(frozen=True)
class RMSprop(UpdateOptions):
    """Gradients divided by the root of their mean squares, with momentum, as in torch.optim.RMSprop.

    With `centered`, gradients are divided by their standard deviation instead.
    """

    lr: float = 1e-2
    alpha: float = 0.99
    epsilon: float = 1e-8
    momentum: float = 0.0
    name: str = "rmsprop"
    centered: bool = field(default=False, kw_only=True)


Optimizer: TypeAlias = SGD | Adam | AdamW | RMSprop


@dataclass(frozen=True)
class GroupSettings:
    """Settings in which groups of parameters differ; `lr` is the factor on the learning rate."""

    lr: float
    weight_decay: float
    l1: float = 0.0
    bound: float = NO_BOUND


def group_of(optimizer: Optimizer, label: str) -> Group | None:
    """Return the first group that matches a parameter by name, or None.

    A parameter of a part of a divided population also matches by the name that it had before the division.
    """
    names = (label, PART.sub("", label))
    return next((group for group in optimizer.groups if any(fnmatchcase(name, group.pattern) for name in names)), None)


def settings_of(optimizer: Optimizer, label: str) -> GroupSettings:
    """Return the settings of the group that a parameter belongs to."""
    group = group_of(optimizer, label) or Group("*")
    decay, l1, bound = (getattr(optimizer if getattr(group, name) is None else group, name) for name in ("weight_decay", "l1", "bound"))
    return GroupSettings(group.lr, decay, l1, NO_BOUND if bound is None else bound)


def is_frozen(optimizer: Optimizer | None, label: str) -> bool:
    """Return whether a group of `optimizer` freezes a parameter."""
    group = None if optimizer is None else group_of(optimizer, label)
    return group is not None and group.frozen
