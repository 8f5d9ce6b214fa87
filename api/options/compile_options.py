"""Compile options: checked, parsed from text, and stored with the project."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Final, Unpack, get_args

from snnc.backends.registry import DEFAULT, AnyBackend, backend_of
from snnc.compiler.errors import HalfNumbersError
from snnc.compiler.ir.graph_data import surrogate_from_data, surrogate_to_data
from snnc.compiler.ir.plan import Mode, Precision, Recompute, Streaming
from snnc.compiler.losses import Loss, parse_loss
from snnc.compiler.losses.composed import Composed
from snnc.compiler.losses.optimizers import Optimizer
from snnc.compiler.losses.text import data_text
from snnc.compiler.lowering.capacities import Capacities, parse_capacity
from snnc.compiler.lowering.half_numbers import HalfOption, half_data, half_text, parse_half
from snnc.compiler.lowering.halves import run_halves
from snnc.compiler.lowering.spike_limits import POLICIES, DropPolicy
from snnc.compiler.neurons.surrogates.surrogate import Surrogate
from snnc.errors import OptionConflictError, OptionValueError
from snnc.options import optimizers
from snnc.options.keywords import CompileKeywords, check_keywords, with_keywords
from snnc.options.kinds import loss_of, optimizer_of, surrogate_of, target_of
from snnc.options.optimizers import parse_optimizer, with_loss_scale, with_lr
from snnc.options.table import RULES, check_support, requests_effect, support_of

STREAMING = ("auto", "off", "inputs", "boundaries", "history")
"""Choices of the option `streaming`: data of a segmented sequence stored outside the tiles."""
OPTIONS_FILE = "model/options.json"
PRECISIONS: Final = get_args(Precision)
SIZES: Final = ("steps", "batch", "capacity", "parts", "memory", "threads", "truncate")
"""Options that are whole numbers of 1 or more; a capacity may also be a :class:`Capacities`, whose smallest number counts."""


@dataclass(frozen=True)
class CompileOptions:
    """The options of :func:`snnc.compile`; None leaves a choice to the model or to snnc."""

    target: str = DEFAULT
    steps: int | None = None
    batch: int | None = None
    loss: Loss | None = None
    loss_output: str | None = None
    optimizer: Optimizer | None = None
    surrogate: Surrogate | None = None
    seed: int = 0
    capacity: int | Capacities | None = None
    mode: Mode = "exact"
    drop: DropPolicy = "lowest"
    gradient_window: tuple[float, float] | None = None
    recompute: Recompute = "auto"
    streaming: Streaming = "auto"
    parts: int | None = None
    memory: int | None = None  # bytes
    threads: int | None = None
    truncate: int | None = None
    precision: Precision = "float32"
    half: HalfOption | None = None
    input_gradients: bool = False

    def __post_init__(self) -> None:
        for name in SIZES:
            value = getattr(self, name)
            value = value.least if isinstance(value, Capacities) else value
            if value is not None and (isinstance(value, bool) or value != int(value) or value < 1):
                raise OptionValueError(f"{name} is {value}; it must be 1 or more.")
        if self.seed < 0:
            raise OptionValueError(f"seed is {self.seed}; it must be 0 or more.")
        if self.mode not in ("exact", "drop"):
            raise OptionValueError(f"mode is {self.mode!r}; it must be 'exact' or 'drop'.")
        for name, choices in (("drop", POLICIES), ("precision", PRECISIONS), ("streaming", STREAMING)):
            if getattr(self, name) not in choices:
                raise OptionValueError(f"{name} is {getattr(self, name)!r}; it must be one of {', '.join(choices)}.")
        length = self.recompute if isinstance(self.recompute, int) and not isinstance(self.recompute, bool) else 0
        if self.recompute not in ("auto", "off") and length < 1:
            raise OptionValueError(
                f"recompute is {self.recompute!r}; it must be 'auto', 'off', or the number of iterations in a segment (>= 1)."
            )
        if self.half is not None and self.precision != "float16":
            raise HalfNumbersError(
                f"half is {half_text(self.half)!r}, but precision is {self.precision!r}; half selects the values in float16, so leave "
                "precision out or give 'float16'."
            )
        if self.recompute == "off" and self.memory is not None:
            raise OptionConflictError(
                f"memory is {self.memory} bytes, a limit that may require recomputation, but recompute is 'off'; leave one of them out."
            )

    @property
    def backend(self) -> AnyBackend:
        """Backend of the target."""
        return backend_of(self.target)

    def for_backend(self, **internal: Any) -> Any:
        """Return the options that the target's backend accepts, as the dataclass of that backend.

        `internal` are settings that users do not give; those that the backend does not have are ignored.
        """
        return self.backend.options_from(self, **internal)

    def requested(self) -> dict[str, Any]:
        """Return, by name, the options that differ from the default and have an effect on at least one target."""
        defaults = {f.name: f.default for f in fields(self)}
        return {name: value for name in RULES if name in defaults and requests_effect(name, value := getattr(self, name), defaults[name])}

    def retargeted(self, target: str) -> CompileOptions:
        """Return the options that still apply when the network runs on a different target, without training.

        Weights and states that ``self.target`` rounds to float16 are rounded on `target` too, if it supports this, so that the spikes are
        equal. Other values are not rounded.
        """
        defaults = {f.name: f.default for f in fields(self)}
        backend = backend_of(target)
        requested = self.requested().items()
        lost: dict[str, Any] = {name: defaults[name] for name, value in requested if support_of(name, backend, value) != "yes"}
        if not backend.has_tiles and (self.mode == "exact" or self.capacity is None):
            lost |= {name: defaults[name] for name in ("capacity", "mode", "drop")}
        half = run_halves(self.backend.halves(self.for_backend())) if support_of("half", backend, self.half) == "yes" else None
        lost |= {"half": half, "precision": defaults["precision"] if half is None else "float16"}
        return replace(self, target=target, **(lost | {"loss": None}))


@with_keywords(CompileKeywords, CompileOptions)
def options(
    target: str = DEFAULT,
    *,
    lr: float | None = None,
    loss_scale: str | float | None = None,
    trial: bool = False,
    **keywords: Unpack[CompileKeywords],
) -> CompileOptions:
    """Create compile options from objects or names; raise OptionValueError if one is out of range, or has no effect.

    The options are those of :func:`snnc.compile`; `lr` and `loss_scale` (a factor, or ``"dynamic"``) modify the optimiser. With `trial`,
    the caller runs a batch immediately, on `calibrate` or on random inputs drawn with `seed`; these two options then have an effect on
    every target.
    """
    check_keywords(keywords, CompileKeywords)
    values: dict[str, Any] = {name: _PARSERS[name](value) if name in _PARSERS else value for name, value in keywords.items()}
    # Options without a field in CompileOptions.
    others = {"lr": lr, "loss_scale": loss_scale} | {name: values.pop(name, None) for name in ("calibrate", "learnable")}
    optimizer = values.get("optimizer")
    if isinstance(optimizer, str):
        optimizer = parse_optimizer(optimizer, lr)
    else:
        optimizer = with_lr(optimizer, lr, values.get("loss") is not None)
    values["optimizer"] = None if optimizer is None else with_loss_scale(optimizer, loss_scale)
    if values.get("half") is not None and values.get("precision", "float32") == "float32":
        values["precision"] = "float16"
    chosen = CompileOptions(target_of(target), **values)
    requested = chosen.requested() | {name: value for name, value in others.items() if value is not None}
    exempt = {"calibrate", "seed"} if trial else set()
    if chosen.half is not None:
        exempt.add("precision")  # half implies float16
    check_support(target, chosen.loss is not None, {name: value for name, value in requested.items() if name not in exempt})
    _check_dropping(chosen)
    return chosen


def _check_dropping(chosen: CompileOptions) -> None:
    if chosen.mode == "exact" and chosen.drop != "lowest":
        raise OptionConflictError(
            f"drop is {chosen.drop!r}, but mode is 'exact', so no spike is dropped; give mode='drop', or leave drop out."
        )
    if chosen.mode == "drop" and (chosen.parts or 1) > 1:
        raise OptionConflictError(
            f"parts is {chosen.parts}, but mode is 'drop', and the dropped spikes would depend on the parts; leave one of them out."
        )
    if chosen.drop != "lowest" and chosen.capacity is None:
        raise OptionConflictError(f"drop is {chosen.drop!r}, but without a capacity no spike is dropped; give capacity.")
    if chosen.backend.has_tiles:
        return
    if chosen.mode == "exact" and chosen.capacity is not None:
        raise OptionConflictError(
            f"capacity is {chosen.capacity}, but {chosen.target!r} sends all spikes at once in mode 'exact'; give mode='drop' to drop the "
            "spikes beyond it, or leave it out."
        )
    if chosen.mode == "drop" and chosen.capacity is None:
        raise OptionConflictError(
            f"mode is 'drop', but {chosen.target!r} has no windows that determine a capacity; give capacity, the maximum number of spikes "
            "that a source sends in a step."
        )


def parse_recompute(recompute: str | int) -> str | int:
    """Parse ``"auto"``, ``"off"`` or the number of iterations per segment, which may be text."""
    return int(recompute) if isinstance(recompute, str) and recompute.isdecimal() else recompute


def parse_memory(memory: str | int | None) -> int | None:
    """Parse a number of bytes: ``"500M"``, ``"2G"``, ``"64k"`` (powers of 1024), or a plain number."""
    if not isinstance(memory, str):
        return memory
    text = memory.strip().upper().removesuffix("B").removesuffix("I")
    power = "KMGT".find(text[-1:]) + 1 if text else 0
    try:
        number = float(text[:-1] if power else text) * 1024**power
    except ValueError:
        number = math.nan
    if not 1 <= number < 2**63:
        raise OptionValueError(f"the memory {memory!r} is not a size; give bytes, or a number with K, M or G, as in 500M.")
    return int(number)


def parse_window(window: str | float | tuple[float, float] | None) -> tuple[float, float] | None:
    """Parse a gradient window: its lower end, or both ends; as text ``"-0.1"`` or ``"-0.1,0.5"``."""
    if window is None:
        return None
    try:
        ends = tuple(map(float, window.split(","))) if isinstance(window, str) else (window,) if isinstance(window, int | float) else window
    except ValueError:
        ends = ()
    if len(ends) == 1:
        ends = (ends[0], math.inf)
    if len(ends) != 2 or not (math.isfinite(ends[0]) and ends[0] < ends[1]):
        raise OptionValueError(
            f"the gradient window is {window!r}; give its lower end, or low,high with low < high, as in -0.1 or -0.1,0.5."
        )
    return float(ends[0]), float(ends[1])


def to_data(chosen: CompileOptions) -> dict[str, Any]:
    """Return options as JSON types, in field order."""
    stored = [f.name for f in fields(chosen) if f.name not in _NOT_IF_DEFAULT or getattr(chosen, f.name) != f.default]
    values = {name: getattr(chosen, name) for name in stored}
    return {name: value if value is None or name not in _CONVERTERS else _CONVERTERS[name][0](value) for name, value in values.items()}


def from_data(data: Mapping[str, Any]) -> CompileOptions:
    """Reverse :func:`to_data`; options that did not exist when the project was written get their defaults."""
    known = {f.name: f.default for f in fields(CompileOptions)}
    values = {name: data[name] if name in _REQUIRED else data.get(name, default) for name, default in known.items()}
    read = {name: value if value is None or name not in _CONVERTERS else _CONVERTERS[name][1](value) for name, value in values.items()}
    return CompileOptions(**read)


def _window(ends: list[float | None]) -> tuple[float, float] | None:
    """Return a window from its ends in JSON, where null is infinite; a null lower end is invalid."""
    low, high = ends
    return parse_window((math.nan if low is None else low, math.inf if high is None else high))


def _loss_text(loss: Loss) -> str:
    if isinstance(loss, Composed):
        return data_text(loss)
    numbers: list[str] = [str(getattr(loss, f.name)) for f in fields(loss)] if is_dataclass(loss) else []
    return f"{loss.name}:{','.join(numbers)}" if numbers else loss.name


_PARSERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "capacity": parse_capacity,
    "gradient_window": parse_window,
    "half": parse_half,
    "loss": loss_of,
    "memory": parse_memory,
    "optimizer": optimizer_of,
    "recompute": parse_recompute,
    "surrogate": surrogate_of,
}
_REQUIRED: Final = ("target", "steps", "batch", "loss", "optimizer", "surrogate", "seed", "capacity", "mode")
"""Options that every version of snnc stores in a project."""
_NOT_IF_DEFAULT: Final = ("drop", "half")
"""Options that a project stores only if they are not the default."""
_CONVERTERS: Final[Mapping[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]]] = {
    "loss": (_loss_text, parse_loss),
    "optimizer": (optimizers.to_data, optimizers.from_data),
    "surrogate": (surrogate_to_data, surrogate_from_data),
    "capacity": (lambda capacity: capacity if isinstance(capacity, int) else capacity.text, parse_capacity),
    "half": (half_data, parse_half),
    "gradient_window": (lambda ends: [x if math.isfinite(x) else None for x in ends], _window),
}
"""Functions that convert an option to JSON types and back."""
