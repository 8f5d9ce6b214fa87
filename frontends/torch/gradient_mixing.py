"""Functions of a module with a hand-written backward pass: snnc does not follow gradients over whole sequences.

A surrogate acts on each entry separately. SpikingJelly's ``DSRIFNode`` runs all steps in one function, and its gradient is that of spike
rates.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from snnc.frontends.torch.exporting import require_torch


@contextmanager
def watching_functions() -> Iterator[set[str]]:
    """Yield the names of the called functions whose gradient mixes steps."""
    torch = require_torch()
    function = torch.autograd.Function
    apply = function.__dict__["apply"]
    known: dict[tuple[Any, Any], bool] = {}
    found: set[str] = set()

    def watched(cls: Any, *arguments: Any, **named: Any) -> Any:
        result = apply.__func__(cls, *arguments, **named)
        key = cls, getattr(result, "shape", None)
        if key not in known:
            known[key] = _mixes(lambda *changed: apply.__func__(cls, *changed, **named), arguments, result)
        if known[key]:
            found.add(cls.__name__)
        return result

    function.apply = classmethod(watched)
    try:
        yield found
    finally:
        function.apply = apply


def _mixes(call: Any, arguments: tuple[Any, ...], result: Any) -> bool:
    """Return whether the gradient of a step (the first axis) of the result reaches other steps of an argument of that shape."""
    torch = require_torch()
    if not isinstance(result, torch.Tensor) or not result.requires_grad or result.ndim < 2 or len(result) < 2:
        return False
    for k, argument in enumerate(arguments):
        if not isinstance(argument, torch.Tensor) or argument.shape != result.shape or not argument.requires_grad:
            continue
        size = argument[0].numel()
        step = torch.linspace(0.05, 0.95, size, dtype=argument.dtype, device=argument.device).reshape(argument.shape[1:])
        x = step.expand(argument.shape).clone().requires_grad_()
        only_first = torch.zeros_like(result)
        only_first[0] = 1
        try:
            y = call(*arguments[:k], x, *arguments[k + 1 :])
            (gradient,) = torch.autograd.grad(y, x, only_first, allow_unused=True)
        except NotImplementedError:  # it has no backward pass
            continue
        except RuntimeError:  # it has one for another number of steps
            return True
        if gradient is not None and bool(gradient[1:].any()):
            return True
    return False
