"""Find autograd functions whose own backward pass mixes time steps, which snnc cannot train.

The gradient of a surrogate acts on each step separately. SpikingJelly's ``DSRIFNode``, in contrast, runs all steps in one function, which
computes the gradient of spike rates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

from snnc.frontends.torch.exporting import require_torch

FunctionCall: TypeAlias = Callable[[Callable[..., Any], Any, tuple[Any, ...], Mapping[str, Any]], Any]
"""Function that replaces a call of an autograd function; its arguments: the original call, the function's class, positional and named
arguments."""


@contextmanager
def watching_functions() -> Iterator[set[str]]:
    """Yield a set that the block fills with the names of the called autograd functions whose gradient mixes steps."""
    known: dict[tuple[Any, Any], bool] = {}
    names: set[str] = set()

    def watched(call: Callable[..., Any], cls: Any, arguments: tuple[Any, ...], _: Mapping[str, Any]) -> Any:
        result = call(*arguments)
        key = cls, getattr(result, "shape", None)
        if key not in known:
            known[key] = _mixes(call, arguments, result)
        if known[key]:
            names.add(cls.__name__)
        return result

    with replacing_apply(watched):
        yield names


@contextmanager
def replacing_apply(call_function: FunctionCall) -> Iterator[None]:
    """Replace every call of a ``torch.autograd.Function`` in the block by a call of `call_function`."""
    function = require_torch().autograd.Function
    apply = function.__dict__["apply"]

    def replaced(cls: Any, *arguments: Any, **named: Any) -> Any:
        return call_function(lambda *changed: apply.__func__(cls, *changed, **named), cls, arguments, named)

    function.apply = classmethod(replaced)
    try:
        yield
    finally:
        function.apply = apply


def _mixes(call: Any, arguments: tuple[Any, ...], result: Any) -> bool:
    """Return whether the gradient of the result's first step (first axis) reaches other steps of an argument of the same shape."""
    torch = require_torch()
    if not isinstance(result, torch.Tensor) or not result.requires_grad or result.ndim < 2 or len(result) < 2:
        return False
    for k, argument in enumerate(arguments):
        if not isinstance(argument, torch.Tensor) or argument.shape != result.shape or not argument.requires_grad:
            continue
        size = argument[0].numel()
        # The same values at all steps, between 0 and 1: surrogate derivatives are not 0 there, whether the argument is a membrane potential
        # (with a threshold of 1) or its distance from the threshold.
        step = torch.linspace(0.05, 0.95, size, dtype=argument.dtype, device=argument.device).reshape(argument.shape[1:])
        x = step.expand(argument.shape).clone().requires_grad_()
        only_first = torch.zeros_like(result)
        only_first[0] = 1
        try:
            y = call(*arguments[:k], x, *arguments[k + 1 :])
            (gradient,) = torch.autograd.grad(y, x, only_first, allow_unused=True)
        except NotImplementedError:  # the function has no backward pass
            continue
        except RuntimeError:  # its backward pass requires a different number of steps
            return True
        if gradient is not None and bool(gradient[1:].any()):
            return True
    return False
