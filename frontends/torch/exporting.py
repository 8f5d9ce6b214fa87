"""Export a PyTorch module to an ONNX file with the first of PyTorch's exporters that accepts it."""

from __future__ import annotations

import copy
import importlib
import inspect
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from snnc.compiler.errors import ToolMissingError
from snnc.frontends.onnx.writer.errors import TorchExportError, TorchModuleError

_POSITIONAL: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
EXPORTERS: Final = ("TorchScript", "dynamo")
"""PyTorch's exporters in the default order of attempts, the faster one first."""
OPSET: Final = 17
"""Opset of files from the TorchScript exporter."""
_OPSETS: Final = {"TorchScript": OPSET, "dynamo": 18}
"""Opset of files by exporter: the dynamo exporter writes operators of opset 18."""
_SPIKINGJELLY: Final = "sj_"
"""Prefix of the namespaces of SpikingJelly's operators."""


@dataclass(frozen=True, eq=False)
class ExportedCall:
    """What to export: a module that may be modified, its title, the arguments of its call, the names of its inputs, and the exporters."""

    module: Any
    title: str
    arguments: tuple[Any, ...]
    names: tuple[str, ...]
    exporters: tuple[str, ...] = EXPORTERS


def require_torch() -> Any:
    """Return PyTorch, or raise a ToolMissingError if it is not installed."""
    try:
        import torch
    except ImportError:
        raise ToolMissingError("PyTorch is not installed; pip install torch (or snnc[torch]).") from None
    return torch


def export(call: ExportedCall, file: Path) -> None:
    """Export `call` to `file`; each exporter gets its own copy of the module.

    Raises a TorchExportError if the module fails on its arguments, or neither exporter accepts it.
    """
    torch = require_torch()
    failures = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with torch.no_grad():
                results = copy.deepcopy(call.module)(*call.arguments)
        except Exception as error:  # the user's own code
            raise TorchExportError(f"{call.title} does not run on the example: {first_line(error)}") from None
        outputs = [leaf for leaf in torch.utils._pytree.tree_leaves(results) if isinstance(leaf, torch.Tensor)]
        output_names = ["output"] if len(outputs) == 1 else [f"output{k}" for k in range(1, len(outputs) + 1)]
        names = (list(call.names), output_names)
        for name in call.exporters:
            dynamo = name == "dynamo"
            try:
                # A marked module needs gradients; the dynamo exporter does not support a module that enables them itself.
                with torch.set_grad_enabled(dynamo), _without_messages(), nullcontext() if dynamo else _as_torch_operations():
                    _call_exporter(torch, copy.deepcopy(call.module), call.arguments, file, names, dynamo, _OPSETS[name])
            except Exception as error:  # exporters may raise any exception
                failures.append(f"{name}: {first_line(error)}")
            else:
                return
    raise TorchExportError(
        f"neither of PyTorch's exporters accepts {call.title} ({'; '.join(failures)}). Export it yourself and pass the file to snnc.load."
    )


def export_evaluated(module: Any, examples: Mapping[str, npt.ArrayLike], folder: Path) -> Path:
    """Export a module without a time axis, in ``eval()`` mode, into `folder`, and return the file; the module is not changed.

    `examples` are arguments of ``forward`` by name, [1, …] each; a single required argument may also be called ``x``. Other entries are
    ignored.

    Raises a TorchModuleError if `module` is not a module, or an argument is missing, and a TorchExportError if neither of PyTorch's
    exporters accepts the module.
    """
    torch = require_torch()
    if not isinstance(module, torch.nn.Module):
        raise TorchModuleError(f"{type(module).__name__} is neither a torch.nn.Module nor the path of an .onnx file.")
    needed = [p.name for p in inspect.signature(module.forward).parameters.values() if p.default is p.empty and p.kind in _POSITIONAL]
    names = ["x"] if len(needed) < 2 and "x" in examples and not set(needed) & set(examples) else needed
    missing = [name for name in names if name not in examples]
    if missing:
        names_given = ", ".join(examples) or "nothing"
        raise TorchModuleError(f"{type(module).__name__}.forward needs {', '.join(missing)}, but the sample data contain {names_given}.")
    arguments = tuple(torch.as_tensor(np.asarray(examples[name], np.float32)) for name in names)
    title = type(module).__name__
    file = folder / f"{title}.onnx"
    export(ExportedCall(copy.deepcopy(module).eval(), title, arguments, tuple(argument_names(module, arguments))), file)
    return file


def argument_names(module: Any, arguments: tuple[Any, ...]) -> list[str]:
    """Return a name for each tensor of a call: that of the argument in ``forward`` and, if it has several tensors, that of the field."""
    torch = require_torch()
    names = [p.name for p in inspect.signature(module.forward).parameters.values() if p.kind in _POSITIONAL][: len(arguments)]
    names += [f"input{k}" for k in range(len(names) + 1, len(arguments) + 1)]
    return [leaf for name, argument in zip(names, arguments, strict=True) for leaf in _leaf_names(torch, name, argument)]


def _leaf_names(torch: Any, name: str, value: Any) -> list[str]:
    if isinstance(value, torch.Tensor):
        return [name]
    if isinstance(value, Mapping):
        parts = list(value.items())
    elif isinstance(value, tuple | list):
        parts = list(zip(getattr(value, "_fields", range(1, len(value) + 1)), value, strict=True))
    else:
        return []
    return [leaf for key, part in parts for leaf in _leaf_names(torch, f"{name}_{key}", part)]


def first_line(error: Exception) -> str:
    """Return the type of `error` and the first line of its message."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__


@contextmanager
def _without_messages() -> Iterator[None]:
    logger = logging.getLogger("torch.onnx")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def _call_exporter(
    torch: Any, module: Any, arguments: tuple[Any, ...], file: Path, names: tuple[list[str], list[str]], dynamo: bool, opset: int
) -> None:
    options: dict[str, Any] = {"input_names": names[0], "output_names": names[1], "opset_version": opset, "dynamo": dynamo}
    if dynamo:
        from snnc.frontends.torch.marking import translations  # imported here because marking imports this module

        options |= {"verbose": False, "custom_translation_table": translations(torch)}
    else:
        options["training"] = torch.onnx.TrainingMode.PRESERVE
    torch.onnx.export(module, arguments, str(file), **options)


def has_spikingjelly_neurons(module: Any) -> bool:
    """Return whether `module` contains neurons of SpikingJelly."""
    return any(hasattr(part, "_memories") for part in module.modules())


@contextmanager
def _as_torch_operations() -> Iterator[None]:
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
    if not namespace.startswith(_SPIKINGJELLY) or getattr(operator, "_opname", "") != "forward":
        return None
    for name in (namespace.removeprefix(_SPIKINGJELLY), f"{namespace.removeprefix(_SPIKINGJELLY)}_"):
        try:
            module = importlib.import_module(f"spikingjelly._ops.{name}")
        except ImportError:
            continue
        code = getattr(getattr(module, "_reference", None), "_forward_impl", None)
        return code if callable(code) else None
    return None
