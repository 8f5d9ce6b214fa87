"""Keyword arguments of compilation, defined once for all functions that accept them, and visible in ``help``.

Defaults are those of :class:`~snnc.options.compile_options.CompileOptions`; an option without a field there defaults to None.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

if TYPE_CHECKING:
    import numpy.typing as npt

    from snnc.compiler.ir.plan import Mode, Precision, Recompute, Streaming
    from snnc.compiler.losses import Loss
    from snnc.compiler.losses.optimizers import Optimizer
    from snnc.compiler.lowering.capacities import CapacityArgument
    from snnc.compiler.lowering.half_numbers import HalfArgument
    from snnc.compiler.lowering.spike_limits import DropPolicy
    from snnc.compiler.neurons.surrogates.surrogate import Surrogate

Function = TypeVar("Function", bound=Callable[..., Any])


class EstimateKeywords(TypedDict, total=False):
    """Keywords of :func:`snnc.estimate`."""

    steps: int | None
    batch: int | None
    loss: str | Loss | None
    optimizer: str | Optimizer | None
    surrogate: str | Surrogate | None
    capacity: CapacityArgument | None
    mode: Mode
    calibrate: Mapping[str, npt.ArrayLike] | npt.ArrayLike | None
    gradient_window: str | float | tuple[float, float] | None
    recompute: Recompute
    streaming: Streaming
    parts: int | None
    loss_output: str | None


class CompileKeywords(EstimateKeywords, total=False):
    """Keywords of :func:`snnc.compile`."""

    seed: int
    drop: DropPolicy
    memory: str | int | None
    threads: int | None
    truncate: int | None
    input_gradients: bool
    precision: Precision
    half: HalfArgument | None
    learnable: str | Iterable[str] | None


def with_keywords(keywords: Any, defaults: type) -> Callable[[Function], Function]:
    """Return a decorator that shows the keywords of a TypedDict, with the defaults of a dataclass, in the signature of a function."""
    values = {f.name: f.default for f in fields(defaults)}
    hints: Mapping[str, Any] = {name: getattr(hint, "__forward_arg__", hint) for name, hint in keywords.__annotations__.items()}
    added = [inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default=values.get(n), annotation=h) for n, h in hints.items()]

    def shown(function: Function) -> Function:
        plain = inspect.signature(function)
        named = [p for p in plain.parameters.values() if p.kind is not p.VAR_KEYWORD]
        first = [p for p in named if p.kind is not p.KEYWORD_ONLY]
        function.__signature__ = plain.replace(parameters=[*first, *added, *(p for p in named if p not in first)])  # type: ignore[attr-defined]
        return function

    return shown


def check_keywords(keywords: Mapping[str, Any], known: Any) -> None:
    """Raise TypeError for an unknown keyword, as Python does for functions without ``**``."""
    unknown = next((name for name in keywords if name not in known.__annotations__), None)
    if unknown is not None:
        raise TypeError(f"got an unexpected keyword argument {unknown!r}")
