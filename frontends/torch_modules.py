"""PyTorch modules -> Graph by way of PyTorch's own ONNX exporters, and trained weights back into the modules."""

from __future__ import annotations

import copy
import inspect
import tempfile
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from snnc.compiler.errors import ToolMissingError
from snnc.compiler.graph import Array, Conv, Graph, Linear, Population
from snnc.compiler.passes.edit import replace_operation
from snnc.frontends.onnx.load import load_onnx
from snnc.frontends.onnx_writer.errors import AmbiguousWeightError, TorchExportError, TorchModuleError, UnmatchedWeightError

SLOW: Final = 20.0
"""Seconds from which on an export is said to be slow."""
LONG: Final = 200
"""Steps from which on a shorter example is advised beforehand."""
_OPSET: Final = {"TorchScript": 17, "dynamo": 18}


def from_torch(module: Any, example: Any, *, steps: int | None = None) -> Graph:
    """Turn a PyTorch module (snnTorch, Norse, SpikingJelly, or plain PyTorch) into a graph.

    The module is exported by PyTorch into a temporary folder, TorchScript's exporter first, and the file is read as any other. Names of
    inputs are those of ``forward``'s arguments, outputs are ``output``, or ``output1`` and so on.

    A layer whose weight needs no gradient in the module is not learnable in the graph either; a neuron's parameter is learnable where the
    module has a parameter of that name and value (``lif1.beta``).

    Parameters
    ----------
    module
        A ``torch.nn.Module`` that takes whole sequences, or one step with its states as arguments and results. It stays as it is.
    example
        One argument of ``forward``, or a tuple of them: tensors or arrays. The network does not depend on their values, and its
        number of steps costs time: a loop in ``forward`` is exported step by step. Four to ten steps are enough.
    steps
        Number of time steps of the graph, where it is to differ from the example's.

    Raises
    ------
    TorchModuleError
        `module` is no module.
    TorchExportError
        Neither of PyTorch's exporters takes it.
    OnnxError
        The exported file is no network that snnc reads.
    ToolMissingError
        PyTorch is not installed.

    Examples
    --------
    ::

        graph = snnc.from_torch(net, torch.zeros(8, 1, 700), steps=100)
        session = snnc.compile(graph, loss="ce_count", optimizer="adam:0.001")
    """
    torch = _torch()
    if not isinstance(module, torch.nn.Module):
        raise TorchModuleError(f"{type(module).__name__} is no torch.nn.Module; give the module itself.")
    arguments = tuple(torch.as_tensor(a) for a in (example if isinstance(example, tuple | list) else (example,)))
    longest = max((max(a.shape[:2], default=0) for a in arguments if a.ndim > 2), default=0)
    if longest >= LONG:
        warnings.warn(
            f"the example has up to {longest} steps, and each is exported on its own; an example of 8 steps gives the same network "
            f"(from_torch(..., steps={longest})), and so does a module of a single step with its states as arguments and results.",
            UserWarning,
            stacklevel=2,
        )
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="snnc-") as folder:
        file = Path(folder) / f"{type(module).__name__}.onnx"
        _export(torch, module, arguments, file)
        exported = time.monotonic()
        graph = load_onnx(file, steps=steps)
    _mark_learnable(graph, module)
    _say_slow(exported - began, time.monotonic() - exported)
    if steps is not None:
        graph.steps = steps
    return graph


def _say_slow(export: float, read: float) -> None:
    if export + read > SLOW:
        warnings.warn(
            f"PyTorch exported the module in {export:.0f} s and snnc read it in {read:.0f} s; an example with fewer steps is faster "
            "in proportion and gives the same network, a module of a single step faster still.",
            UserWarning,
            stacklevel=3,
        )


def _mark_learnable(graph: Graph, module: Any) -> None:
    """Take over from the module what training may change, where values tell which parameter is which."""
    trained = {name: t.detach().cpu().numpy() for name, t in module.named_parameters() if t.requires_grad}
    frozen = {name: t.detach().cpu().numpy() for name, t in module.named_parameters() if not t.requires_grad}
    for name, layer in graph.of_type(Linear, Conv):
        of_frozen, of_trained = (any(_form(n, t, layer.weight, layer.weight) for n, t in tensors.items()) for tensors in (frozen, trained))
        if of_frozen and not of_trained:
            replace_operation(graph, name, replace(layer, learnable=False))
    for name, population in graph.of_type(Population):
        ours = {p: np.asarray(population.parameters.get(p, default)) for p, default in population.model.parameters.items()}
        found = {p for p, v in ours.items() for n, t in trained.items() if n.rpartition(".")[2] == p and _form(n, t, v, v)}
        replace_operation(graph, name, replace(population, learnable=population.learnable | found))


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        raise ToolMissingError("PyTorch is not installed; pip install torch (or snnc[torch]).") from None
    return torch


def _export(torch: Any, module: Any, arguments: tuple[Any, ...], file: Path) -> None:
    """Export a copy of the module by the first exporter that takes it."""
    inputs = _argument_names(module, len(arguments))
    failures = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with torch.no_grad():
                found = copy.deepcopy(module)(*arguments)
        except Exception as error:  # the user's own code
            raise TorchExportError(f"{type(module).__name__} does not run on the example: {_first_line(error)}") from None
        outputs = _output_names(torch, found)
        for name, dynamo in (("TorchScript", False), ("dynamo", True)):
            try:
                _call_exporter(torch, copy.deepcopy(module), arguments, file, (inputs, outputs), dynamo, _OPSET[name])
            except Exception as error:  # exporters raise whatever they meet
                failures.append(f"{name}: {_first_line(error)}")
            else:
                return
    raise TorchExportError(
        f"PyTorch exports {type(module).__name__} neither way ({'; '.join(failures)}). Export it yourself and give snnc.load the file."
    )


def _call_exporter(
    torch: Any, module: Any, arguments: tuple[Any, ...], file: Path, names: tuple[list[str], list[str]], dynamo: bool, opset: int
) -> None:
    options: dict[str, Any] = {"input_names": names[0], "output_names": names[1], "opset_version": opset, "dynamo": dynamo}
    if dynamo:
        options["verbose"] = False
    else:
        options["training"] = torch.onnx.TrainingMode.PRESERVE
    torch.onnx.export(module, arguments, str(file), **options)


def _argument_names(module: Any, count: int) -> list[str]:
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [p.name for p in inspect.signature(module.forward).parameters.values() if p.kind in positional][:count]
    return names + [f"input{k}" for k in range(len(names) + 1, count + 1)]


def _output_names(torch: Any, found: Any) -> list[str]:
    flat = _tensors(torch, found)
    return ["output"] if len(flat) == 1 else [f"output{k}" for k in range(1, len(flat) + 1)]


def _tensors(torch: Any, value: Any) -> list[Any]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, Mapping):
        value = value.values()
    return [t for v in value for t in _tensors(torch, v)] if hasattr(value, "__iter__") else []


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__


# ---- and back --------------------------------------------------------------------------------------------------------


def to_torch(trained: Any, module: Any, *, graph: Graph | None = None) -> list[str]:
    """Write trained weights into the parameters of the module that the network came from.

    Each weight of the network belongs to the parameter (or buffer) of the module that held its value when the module was imported: the
    module must not have changed since. Nothing is written unless everything fits.

    Parameters
    ----------
    trained
        A session, or what its ``state_dict()`` returned.
    module
        The module that :func:`from_torch` was given.
    graph
        With a plain state dictionary: the graph that :func:`from_torch` returned, whose values tell what belongs where. Without it only
        shapes and names can tell.

    Returns
    -------
    list
        Names of the module's tensors that were written.

    Raises
    ------
    UnmatchedWeightError
        A weight that training changed has no counterpart in the module.
    AmbiguousWeightError
        It has several.
    """
    torch = _torch()
    if not isinstance(module, torch.nn.Module):
        raise TorchModuleError(f"{type(module).__name__} is no torch.nn.Module; give the module itself.")
    values, originals = _weights(trained, graph)
    tensors = {name: np.asarray(t.detach().cpu().numpy()) for name, t in module.state_dict(keep_vars=True).items() if t.is_floating_point()}
    places = _places(values, originals, tensors)
    state = module.state_dict(keep_vars=True)
    with torch.no_grad():
        for name, value in places.items():
            state[name].copy_(torch.as_tensor(value))
    return list(places)


def _weights(trained: Any, graph: Graph | None) -> tuple[dict[str, Array], dict[str, Array]]:
    """Trained values by label, and the values before training where they are known."""
    if isinstance(trained, Mapping):
        values = {str(name): np.asarray(value) for name, value in trained.items()}
        if graph is None:
            return values, {}
        from snnc.compiler.lower import lower

        return values, {p.label: p.value for p in lower(graph).parameters.values()}
    if not hasattr(trained, "state_dict") or not hasattr(trained, "program"):
        raise TorchModuleError(f"{type(trained).__name__} holds no weights of snnc; give a session or its state_dict().")
    return trained.state_dict(), {p.label: p.value for p in trained.program.parameters.values()}


@dataclass(frozen=True)
class _Form:
    """How a weight of the network lies in a tensor of the module: as it is, transposed, or one number for all."""

    tensor: str
    transposed: bool = False


def _places(values: Mapping[str, Array], originals: Mapping[str, Array], tensors: Mapping[str, Array]) -> dict[str, Array]:
    """Tensor name -> its new value."""
    found: dict[str, tuple[str, Array]] = {}
    for label, value in values.items():
        original = originals.get(label)
        if original is not None and np.array_equal(original, value):
            continue
        fitting = [f for name, tensor in tensors.items() if (f := _form(name, tensor, value, original)) is not None]
        form = _chosen(label, value, fitting, original is not None)
        new = _laid_out(value, form, tensors[form.tensor])
        if form.tensor in found and not np.array_equal(found[form.tensor][1], new):
            raise AmbiguousWeightError(
                f"{found[form.tensor][0]!r} and {label!r} of the network both come from {form.tensor!r}, a shared weight, and training "
                "made them differ; the module has one place for them."
            )
        found[form.tensor] = (label, new)
    return {name: new for name, (_, new) in found.items()}


def _form(name: str, tensor: Array, value: Array, original: Array | None) -> _Form | None:
    squeezed = np.squeeze(tensor).shape
    before = value if original is None else original
    for transposed in (False, True) if value.ndim == 2 else (False,):
        laid = before.T if transposed else before
        if original is not None and laid.ndim == 1 and laid.size == tensor.size:  # one value a neuron
            laid = laid.reshape(squeezed)
        if np.squeeze(laid).shape != squeezed and value.size != 1:
            continue
        if value.size == 1 and tensor.size != 1 and original is None:
            continue
        if original is None or np.array_equal(np.broadcast_to(np.squeeze(laid), squeezed), np.squeeze(tensor)):
            return _Form(name, transposed)
    return None


def _chosen(label: str, value: Array, fitting: list[_Form], by_value: bool) -> _Form:
    same_name = [f for f in fitting if f.tensor == label]
    if len(fitting) == 1 or len(same_name) == 1:
        return (same_name or fitting)[0]
    how = "the value that the network was imported with" if by_value else "its shape"
    if not fitting:
        raise UnmatchedWeightError(
            f"no tensor of the module has {how} of {label!r} {list(value.shape)}; give the module as it was when it was imported "
            "(snnc folds scales and normalisation into weights: such weights cannot be taken back)."
        )
    names = ", ".join(repr(f.tensor) for f in fitting)
    advice = "initialise them differently before the import" if by_value else "give the session, or graph=, so that values can tell"
    raise AmbiguousWeightError(f"{label!r} {list(value.shape)} could be {names}, which all have {how}; {advice}.")


def _laid_out(value: Array, form: _Form, tensor: Array) -> npt.NDArray[Any]:
    laid = value.T if form.transposed else value
    return np.broadcast_to(laid.reshape(tensor.shape) if value.size == tensor.size else laid, tensor.shape).astype(tensor.dtype)
