"""Create optimisers from text such as ``"adamw:lr=1e-3,weight_decay=1e-2; *.bias: weight_decay=0"``, and convert them to JSON types."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields, replace
from typing import Any, Final

from snnc.compiler.losses.loss_scale import LossScale
from snnc.compiler.losses.optimizers import SGD, Adam, AdamW, Group, Optimizer, RMSprop
from snnc.errors import OptionConflictError, OptionValueError, UnknownOptimizerError

KINDS: Final[Mapping[str, type[Optimizer]]] = {"sgd": SGD, "adam": Adam, "adamw": AdamW, "rmsprop": RMSprop}
_ALWAYS: Final = ("lr", "momentum", "beta1", "beta2", "alpha", "epsilon", "name")
"""Fields that every project stores; other fields are stored only if they are not the default."""
_OF_GROUPS: Final = ("weight_decay", "l1", "bound")
"""Settings that apply to all parameters, or to one group."""
_BELOW_ONE: Final = ("momentum", "beta1", "beta2", "alpha")
"""Settings of 0 or more and less than 1."""
_FLAGS: Final = ("nesterov", "centered", "accumulate", "frozen")
"""Settings that are true or false; in text, their name alone means true."""


def parse_optimizer(text: str, lr: float | None = None) -> Optimizer:
    """Create an optimiser from text: ``"adam"``, ``"adam:0.002"``, ``"sgd:0.01,0.9,nesterov"``, ``"adamw:weight_decay=0.1"``.

    Numbers without a name are the learning rate and the next fields of the class, in order. Parameter groups follow after semicolons:
    ``"adam:1e-3; *.bias: weight_decay=0; hidden.*: lr=0.1; fc1.*: frozen"``.

    Raise UnknownOptimizerError if the name is unknown, or a setting or group is invalid; OptionValueError if a number is out of range;
    OptionConflictError if the text has a learning rate, and `lr` is given.
    """
    first, *groups = (part.strip() for part in text.strip().split(";"))
    name, _, numbers = first.lower().partition(":")
    if name.strip() not in KINDS:
        known = ", ".join(KINDS)
        raise UnknownOptimizerError(f"the optimiser {text!r} is unknown; snnc has {known}, with numbers as in 'adam:0.001'.")
    kind = KINDS[name.strip()]
    options = (*_OF_GROUPS, "clip_value", "clip_norm", "loss_scale", *(f for f in _FLAGS if f in kind.__dataclass_fields__))
    values = _values(text, name.strip(), numbers, tuple(f.name for f in fields(kind) if not f.kw_only and f.name != "name"), options)
    if lr is not None and "lr" in values:
        raise OptionConflictError(f"the optimiser {text!r} has a learning rate, but lr is {lr}; leave one of them out.")
    if lr is not None:
        values["lr"] = lr
    return check_optimizer(kind(**values, groups=tuple(_group(text, group) for group in groups if group)))


def _group(text: str, group: str) -> Group:
    pattern, colon, numbers = group.rpartition(":")
    if not colon or not pattern.strip():
        raise UnknownOptimizerError(
            f"the optimiser {text!r} has an invalid group {group!r}; write a name pattern, a colon and settings, as in "
            "'adam:0.001; *.bias: weight_decay=0; fc1.*: frozen'."
        )
    return Group(pattern.strip(), **_values(text, "a group", numbers.lower(), (), ("lr", *_OF_GROUPS, "frozen")))


def _values(text: str, name: str, numbers: str, ordered: tuple[str, ...], more: tuple[str, ...]) -> dict[str, Any]:
    """Parse ``0.01,0.9,weight_decay=0.1,nesterov`` into settings by name."""
    settings: dict[str, Any] = {}
    try:
        for place, part in enumerate(p.strip() for p in numbers.split(",") if p.strip()):
            key, equals, value = (piece.strip() for piece in part.partition("="))
            if key in _FLAGS and key in more and not equals:
                settings[key] = True
            elif equals and key == "loss_scale" and key in more and key not in settings:
                settings[key] = _loss_scale(value)
            elif equals and key in (*ordered, *more) and key not in (*_FLAGS, *settings):
                settings[key] = float(value)
            elif not equals and place < len(ordered) and ordered[place] not in settings:
                settings[ordered[place]] = float(part)
            else:
                raise ValueError(part)
    except ValueError:
        accepted = ", ".join((*ordered, *more))
        wrong = f"sets {key} twice" if key in settings else f"has an invalid setting, {part!r}"
        raise UnknownOptimizerError(f"the optimiser {text!r} {wrong}; {name} accepts {accepted}.") from None
    return settings


def with_lr(optimizer: Optimizer | None, lr: float | None, training: bool) -> Optimizer | None:
    """Return `optimizer` with the learning rate `lr`, if given; without an optimiser, return Adam for training, otherwise None."""
    if optimizer is None:
        return parse_optimizer("adam", lr) if training else None
    return check_optimizer(optimizer if lr is None else replace(optimizer, lr=lr))


def with_loss_scale(optimizer: Optimizer, scale: str | float | None) -> Optimizer:
    """Return `optimizer` with the loss scale `scale`: a factor, ``"dynamic"``, or None for no change."""
    if scale is None:
        return optimizer
    if optimizer.loss_scale is not None:
        raise OptionConflictError(f"the optimiser has a loss_scale, but loss_scale is {scale}; leave one of them out.")
    try:
        return check_optimizer(replace(optimizer, loss_scale=_loss_scale(str(scale))))
    except ValueError:
        raise OptionValueError(f"loss_scale is {scale!r}; give a factor, as in 1024, or 'dynamic'.") from None


def _loss_scale(text: str) -> LossScale:
    return LossScale() if text == "dynamic" else LossScale(float(text), dynamic=False)


def check_optimizer(optimizer: Optimizer) -> Optimizer:
    """Return `optimizer`; raise OptionValueError if a setting is out of range."""
    if not 0 < optimizer.lr < math.inf:
        raise OptionValueError(f"the learning rate is {optimizer.lr}; it must be a number above 0.")
    for name in _BELOW_ONE:
        if not 0 <= (value := getattr(optimizer, name, 0)) < 1:
            raise OptionValueError(f"{name} of the optimiser is {value}; it must be 0 or more and less than 1.")
    all_groups = (optimizer, *optimizer.groups)
    not_negative = [(name, getattr(group, name)) for group in all_groups for name in ("weight_decay", "l1")]
    for name, value in not_negative + [("lr of a group", group.lr) for group in optimizer.groups]:
        if value is not None and not 0 <= value < math.inf:
            raise OptionValueError(f"{name} of the optimiser is {value}; it must be a number of 0 or more.")
    positive = [("epsilon", getattr(optimizer, "epsilon", 1.0)), ("clip_value", optimizer.clip_value), ("clip_norm", optimizer.clip_norm)]
    for name, value in positive + [("bound", group.bound) for group in all_groups]:
        if value is not None and not 0 < value < math.inf:
            raise OptionValueError(f"{name} of the optimiser is {value}; it must be a number above 0.")
    _check_loss_scale(optimizer.loss_scale)
    if isinstance(optimizer, SGD) and optimizer.nesterov and not optimizer.momentum:
        raise OptionValueError("nesterov looks ahead along the momentum, but momentum is 0; give one, as in sgd:0.1,0.9,nesterov.")
    return optimizer


def _check_loss_scale(scale: object) -> None:
    if scale is None:
        return
    if not isinstance(scale, LossScale):
        raise OptionValueError(f"loss_scale of the optimiser is {scale!r}; give snnc.LossScale({scale!r}), or None for no scaling.")
    for name, value, limit in (("factor", scale.factor, math.inf), ("growth", scale.growth, math.inf), ("backoff", scale.backoff, 1.0)):
        if not 0 < value < limit or (name == "growth" and value < 1):
            raise OptionValueError(f"{name} of the loss scale is {value}; factor must be above 0, growth 1 or more, backoff in 0 … 1.")
    if isinstance(scale.interval, bool) or not isinstance(scale.interval, int) or scale.interval < 1:
        raise OptionValueError(f"interval of the loss scale is {scale.interval}; it must be a number of updates, 1 or more.")


def to_data(optimizer: Optimizer) -> dict[str, Any]:
    """Return an optimiser as JSON types."""
    values = asdict(optimizer)
    written = {f.name: values[f.name] for f in fields(optimizer) if f.name in _ALWAYS or getattr(optimizer, f.name) != f.default}
    ordered = {name: written.pop(name) for name in _ALWAYS if name in written}
    written.pop("groups", None)
    groups = [{name: v for name, v in asdict(g).items() if v is not None or name == "weight_decay"} for g in optimizer.groups]
    return ordered | written | ({"groups": groups} if groups else {})


def from_data(data: Mapping[str, Any]) -> Optimizer:
    """Reverse :func:`to_data`; raise ValueError if a setting has the wrong type."""
    groups = tuple(Group(**group) for group in data.get("groups", ()))
    kind: Callable[..., Optimizer] = KINDS[data["name"]]
    scale = None if data.get("loss_scale") is None else LossScale(**data["loss_scale"])
    optimizer = kind(**{**data, "groups": groups, "loss_scale": scale})
    for settings in (optimizer, *groups):
        group_settings = () if settings is optimizer else _OF_GROUPS
        for field in fields(settings):
            value, flag = getattr(settings, field.name), field.name in _FLAGS
            number = isinstance(value, int | float) and not isinstance(value, bool)
            optional = value is None and field.name in ("clip_value", "clip_norm", "bound", *group_settings)
            checked = field.name not in ("name", "groups", "pattern", "loss_scale")
            if checked and not optional and not (isinstance(value, bool) if flag else number):
                raise ValueError(f"{field.name} of the optimiser is {value!s:.60}")
    return optimizer
