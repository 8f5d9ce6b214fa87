"""Import PyTorch modules: export a module to a temporary file, read it like any other file, and give layers the module's names."""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any, Final

import numpy as np

from snnc.compiler.files.temporary import temporary_folder
from snnc.compiler.ir.graph import Graph
from snnc.frontends.onnx.errors import OnnxError
from snnc.frontends.onnx.load import load_onnx
from snnc.frontends.onnx.writer.errors import TorchModuleError
from snnc.frontends.torch.exporting import EXPORTERS, ExportedCall, argument_names, export, has_spikingjelly_neurons, require_torch
from snnc.frontends.torch.marking import clamped_parameters, write_marks
from snnc.frontends.torch.masked_gradients import freeze_masked_entries
from snnc.frontends.torch.naming import copy_learnable, freeze_shared, with_module_names
from snnc.frontends.torch.notices import notices, unclamped
from snnc.frontends.torch.states import enable_gradients, find_call_pattern, private_copy, sequence_module, shortened
from snnc.frontends.torch.training import TrainingLayers, mark

SLOW: Final = 20.0
"""Seconds after which a warning reports a slow export."""
LONG: Final = 200
"""Minimum number of steps for which a warning advises a shorter example."""


def from_torch(module: Any, example: Any, *, steps: int | None = None, train: bool = False) -> Graph:
    """Convert a PyTorch module (snnTorch, Norse, SpikingJelly, or plain PyTorch) to a graph.

    PyTorch exports a copy of the module in ``eval()`` mode to a temporary file, with its TorchScript exporter or, if that fails, with the
    newer one (dynamo), and the file is read like any other. Inputs are named after the arguments of ``forward``; outputs are called
    ``output``, or ``output1`` and so on; layers have the module's names if their weights identify them.

    A module that runs a single step is called once per step, from rest, and its states are carried over. Its neurons store their states
    internally (SpikingJelly's step mode "s", snnTorch's ``init_hidden``), or it accepts and returns one ``state`` (Norse).

    A layer whose weight requires no gradient in the module is not learnable in the graph. A neuron parameter is learnable if the
    module has a trainable parameter with that name and value (``lif1.beta``), or SpikingJelly's ``w`` if its sigmoid, or 1
    minus it, is that value.

    Parameters
    ----------
    module
        A ``torch.nn.Module`` that reads whole sequences, or one step. It is not changed.
    example
        One argument of ``forward``, or a tuple of them: tensors, arrays, or states of several tensors. Give a sequence, [steps, batch, …],
        or a single step if the states are arguments, too. The values do not matter, but the number of steps costs time, because a
        loop in ``forward`` is exported step by step. Four to ten steps are enough, unless signals take more steps
        to return to a neuron.
    steps
        Number of time steps of the graph; by default that of the example. A single-step module without `steps` runs for any number.
    train
        Whether to train as the module does in ``train()`` mode: dropout and batch normalisation become layers of the network.
        Otherwise the graph is the module in ``eval()`` mode: normalisations are folded into weights, and dropout has no effect.

    Raises
    ------
    TorchTrainingError
        With `train`, a dropout or batch normalisation has no counterpart in snnc.
    TorchModuleError
        `module` is not a module.
    HiddenStateExampleError
        The module is a single step that stores its states internally, but the example is not a sequence.
    StateLostError
        The module is a single step that loses its states.
    TorchFunctionError
        An autograd function of the module passes gradients between steps.
    TorchHookError
        A hook changes the gradient of a parameter in a way that snnc cannot reproduce.
    TorchExportError
        The module does not run on the example, or neither of PyTorch's exporters accepts it.
    OnnxError
        snnc cannot read the exported file.
    ToolMissingError
        PyTorch is not installed.

    Examples
    --------
    ::

        graph = snnc.from_torch(net, torch.zeros(8, 1, 700), steps=100)
        session = snnc.compile(graph, loss="ce_count", optimizer="adam:0.001")
    """
    torch = require_torch()
    if not isinstance(module, torch.nn.Module):
        raise TorchModuleError(f"{type(module).__name__} is not a torch.nn.Module; give the module itself.")
    single = not isinstance(example, tuple | list) or hasattr(example, "_fields")
    arguments = tuple(torch.utils._pytree.tree_map(_tensor, a) for a in ((example,) if single else example))
    return _imported(module, arguments, steps, train)


def _imported(module: Any, arguments: tuple[Any, ...], steps: int | None, train: bool) -> Graph:
    torch = require_torch()
    module_copy, title = private_copy(module), type(module).__name__
    pattern = find_call_pattern(module_copy, arguments, title)
    if pattern.each_step:
        arguments = shortened(arguments)
    else:
        _advise_short(torch, arguments)
    layers = mark(module_copy, pattern, arguments) if train else TrainingLayers()
    without_gradient = enable_gradients(module_copy, pattern, arguments)
    names, leaves = tuple(argument_names(module, arguments)), tuple(torch.utils._pytree.tree_leaves(arguments))
    began = time.monotonic()

    def exported(part: Any, exporters: tuple[str, ...]) -> Graph:
        with temporary_folder() as folder:
            file = Path(folder) / f"{title}.onnx"
            export(ExportedCall(sequence_module(part, pattern, arguments), title, leaves, names, exporters), file)
            write_marks(file)
            graph = load_onnx(file, steps=steps, marked=True)
            graph.assumptions.extend(unclamped(clamped_parameters(file), part))
            return graph

    def read(part: Any) -> Graph:
        try:
            graph = exported(part, EXPORTERS)
        except OnnxError:
            # Some neurons of SpikingJelly can be read from the file of only one of the exporters.
            if not has_spikingjelly_neurons(part):
                raise
            graph = exported(part, EXPORTERS[::-1])
        if steps is not None or pattern.each_step:
            graph.steps = steps
        return graph

    graph = with_module_names(read(module_copy), module_copy, read)
    layers.place(graph)
    copy_learnable(graph, module)
    shared = freeze_shared(graph, module)
    freeze_masked_entries(graph, module)
    graph.assumptions.extend(
        f"SNNC-W271: the output of {name!r} carries no gradient in the module, so the layers before it do not learn."
        for name in without_gradient
    )
    graph.assumptions.extend([*layers.notices(), *notices(graph, module, shared, train)])
    seconds = time.monotonic() - began
    if seconds > SLOW:
        warnings.warn(
            f"exporting and reading the module took {seconds:.0f} s; an example with fewer steps is proportionally faster "
            "and results in the same network, and a single-step module is faster still.",
            UserWarning,
            stacklevel=3,
        )
    return graph


def _tensor(value: Any) -> Any:
    torch = require_torch()
    return torch.as_tensor(value) if isinstance(value, np.ndarray | np.generic) else value


def _advise_short(torch: Any, arguments: tuple[Any, ...]) -> None:
    tensors = [a for a in arguments if isinstance(a, torch.Tensor) and a.ndim > 2]
    longest = max((max(a.shape[:2], default=0) for a in tensors), default=0)
    if longest >= LONG:
        warnings.warn(
            f"the example has up to {longest} steps, each exported separately; an example of 8 steps results in the same network "
            f"(from_torch(..., steps={longest})), and so does a single-step module with its states as arguments and results.",
            UserWarning,
            stacklevel=4,
        )
