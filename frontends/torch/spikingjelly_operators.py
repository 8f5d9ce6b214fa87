"""Run SpikingJelly's own operators as PyTorch operations, because PyTorch's TorchScript exporter supports no other operators."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

PREFIX: Final = "sj_"
"""Start of the namespaces of SpikingJelly's operators."""


def has_spikingjelly_neurons(module: Any) -> bool:
    """Return whether `module` contains neurons of SpikingJelly."""
    return any(hasattr(part, "_memories") for part in module.modules())


@contextmanager
def as_torch_operations() -> Iterator[None]:
    """Run SpikingJelly's operators through their reference code, which consists of PyTorch operations."""
    from torch.overrides import TorchFunctionMode

    class AsTorchOperations(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return (reference_of(func) or func)(*args, **(kwargs or {}))

    with AsTorchOperations():
        yield


def reference_of(operator: Any) -> Callable[..., Any] | None:
    """Return the reference code of an operator ``sj_NAME::forward``; None for other operators."""
    namespace = getattr(operator, "namespace", "")
    if not namespace.startswith(PREFIX) or getattr(operator, "_opname", "") != "forward":
        return None
    for name in (namespace.removeprefix(PREFIX), f"{namespace.removeprefix(PREFIX)}_"):
        try:
            module = importlib.import_module(f"spikingjelly._ops.{name}")
        except ImportError:
            continue
        found = getattr(getattr(module, "_reference", None), "_forward_impl", None)
        return found if callable(found) else None
    return None
