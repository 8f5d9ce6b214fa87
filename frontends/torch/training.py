"""Import the dropout and batch normalisation of a module as layers that are active in training.

An export describes a module in ``eval()`` mode. For training, each such layer in a copy of the module is replaced by a marker, a layer of
weights that multiplies each channel by a unique number. An export contains the markers, and their weights identify them in the imported
network, where dropout or normalisation replaces them.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

import numpy as np

from snnc.compiler.ir.graph import Array, Conv, Edge, Graph, Linear, Operation, Population, Scale
from snnc.compiler.ir.shapes import port_map
from snnc.compiler.neurons.library import Dropout
from snnc.compiler.neurons.library.batch_norm import MEAN, SHIFT, SLOPE, VARIANCE, BatchStatistics
from snnc.compiler.passes.edit import add_edge, fresh_name
from snnc.frontends.onnx.writer.errors import TorchTrainingError
from snnc.frontends.torch.exporting import require_torch
from snnc.frontends.torch.states import CallPattern, run_example

STATISTICS: Final = ".statistics"
"""Suffix of the name of the population that stores the statistics of a normalisation."""
_LARGEST: Final = 4096
"""Maximum number of values of a layer without spatial axes, whose marker is a square matrix with as many rows."""
_VECTORS: Final = (2, 3)
"""Numbers of axes of values without spatial axes: [B, n] or [T, B, n]."""
_IMAGES: Final = (4, 5)
"""Numbers of axes of images: [B, channels, height, width], or with T before B."""
_SPIKINGJELLY: Final = "spikingjelly"


@dataclass
class _CalledLayer:
    """A layer of a module, the shape of its input at the last call, and the number of its calls."""

    part: Any
    shape: tuple[int, ...] = ()
    calls: int = 0


@dataclass(frozen=True)
class TrainingLayers:
    """Layers of a module that behave differently in training, and the weights that mark them."""

    parts: Mapping[str, Any] = field(default_factory=dict)
    markers: Mapping[str, Array] = field(default_factory=dict)
    each_step: frozenset[str] = frozenset()  # names of layers that draw a mask, or compute statistics, separately at every step

    def place(self, graph: Graph) -> None:
        """Replace the marked layers of `graph` by dropout and batch normalisation, in place.

        Raises a TorchTrainingError if a marked layer does not occur exactly once.
        """
        for name, marker in self.markers.items():
            nodes = [n for n, o in graph.of_type(Linear, Conv) if o.weight.shape == marker.shape and np.array_equal(o.weight, marker)]
            if len(nodes) != 1:
                raise TorchTrainingError(
                    f"{name!r} of the module occurs {len(nodes)} times in the network; snnc can only import a dropout or batch "
                    "normalisation that is called in one place."
                )
            part, shape = self.parts[name], port_map(graph)[nodes[0], "out"].shape
            chain = _normalisation(part, shape, name in self.each_step) if _is_norm(part) else (Population(Dropout(float(part.p)), shape),)
            _substitute(graph, nodes[0], name, chain)

    def notices(self) -> list[str]:
        """Return notices on differences from training the module."""
        dropped = (n for n in self.each_step if is_dropout(self.parts[n]))
        names = sorted(n for n in dropped if not type(self.parts[n]).__module__.startswith(_SPIKINGJELLY))
        if not names:
            return []
        listed = ", ".join(map(repr, names))
        return [f"SNNC-W278: the dropout of {listed} draws a mask at every step in the module; here a sample keeps its mask."]


def mark(module: Any, pattern: CallPattern, arguments: tuple[Any, ...]) -> TrainingLayers:
    """Replace dropout and batch normalisation of `module` by layers of weights that identify them, in place.

    A layer without counterpart in snnc raises a TorchTrainingError.
    """
    layers = {name: _CalledLayer(part) for name, part in module.named_modules() if _is_norm(part) or is_dropout(part)}
    _watch(module, layers, pattern, arguments)
    markers: dict[str, Array] = {}
    for number, (name, layer) in enumerate(layers.items()):
        _check(name, layer)
        marker = _marker(layer.shape, name, number)
        markers[name] = marker.weight.detach().numpy()
        above, _, last = name.rpartition(".")
        setattr(module.get_submodule(above), last, marker)
    each_step = frozenset(n for n, layer in layers.items() if _each_step(layer))
    return TrainingLayers({n: layer.part for n, layer in layers.items()}, markers, each_step)


def _is_norm(part: Any) -> bool:
    return isinstance(part, require_torch().nn.modules.batchnorm._BatchNorm)


def is_dropout(part: Any) -> bool:
    """Return whether `part` drops values in training."""
    return "Dropout" in type(part).__name__ and bool(getattr(part, "p", None))


def _watch(module: Any, layers: Mapping[str, _CalledLayer], pattern: CallPattern, arguments: tuple[Any, ...]) -> None:
    """Run the example, and record the shapes and calls of the layers."""

    def note(layer: _CalledLayer, _: Any, inputs: tuple[Any, ...]) -> None:
        layer.shape, layer.calls = tuple(inputs[0].shape), layer.calls + 1

    handles = [layer.part.register_forward_pre_hook(partial(note, layer)) for layer in layers.values()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run_example(module, pattern, arguments)
    for handle in handles:
        handle.remove()


def _each_step(layer: _CalledLayer) -> bool:
    """Return whether a layer draws a mask, or computes statistics, separately at every step."""
    return layer.calls > 1 or (is_dropout(layer.part) and not type(layer.part).__module__.startswith(_SPIKINGJELLY))


def _check(name: str, layer: _CalledLayer) -> None:
    part, why = layer.part, None
    if not layer.calls:
        why = "the example does not call it"
    elif _is_norm(part):
        if part.running_mean is None or part.momentum is None:
            why = "it has no running statistics with a momentum"
        elif not all(t is not None and t.requires_grad for t in (part.weight, part.bias)):
            why = "its weight and bias do not learn, but snnc derives the gradient through the statistics from their gradients"
    elif type(part).__name__ != "Dropout":
        why = "it is not nn.Dropout, which drops single values"
    if why is not None:
        raise TorchTrainingError(f"{name!r} ({type(part).__name__}) cannot be imported for training: {why}.")


def _marker(shape: tuple[int, ...], name: str, number: int) -> Any:
    """Return a layer that multiplies each channel by a number that no other marker uses."""
    torch = require_torch()
    if len(shape) in _VECTORS and shape[-1] <= _LARGEST:
        channels = shape[-1]
    elif len(shape) in _IMAGES:
        channels = shape[-3]
    else:
        raise TorchTrainingError(
            f"{name!r} receives values of shape {list(shape)}; snnc imports a dropout or batch normalisation of up to {_LARGEST:,} values "
            "without spatial axes ([B, n]), or of channels ([B, channels, height, width])."
        )
    # Near 1, so that the module computes with usual values; channels differ by more than float32's rounding, markers by more than channels.
    numbers = 1 + 0.01 * (number + 1) + 1e-6 * torch.arange(channels, dtype=torch.float32)
    base: Any = torch.nn.Module

    class Marker(base):  # type: ignore[misc]  # PyTorch may not be installed when types are checked
        def __init__(self) -> None:
            super().__init__()
            weight = numbers.reshape(-1, 1, 1, 1) if len(shape) in _IMAGES else torch.diag(numbers)
            self.weight = torch.nn.Parameter(weight)

        def forward(self, x: Any) -> Any:
            if len(shape) not in _IMAGES:
                return torch.nn.functional.linear(x, self.weight)
            flat = x.flatten(0, 1) if x.ndim == max(_IMAGES) else x
            scaled = torch.nn.functional.conv2d(flat, self.weight, groups=channels)
            return scaled.unflatten(0, x.shape[:2]) if x.ndim == max(_IMAGES) else scaled

    return Marker()


def _normalisation(part: Any, shape: tuple[int, ...], each_step: bool) -> tuple[Operation, ...]:
    per_channel = (shape[0], *(1,) * (len(shape) - 1))

    def over_space(values: Array) -> Array:
        return np.broadcast_to(values.astype(np.float32).reshape(per_channel), shape).copy()

    tensors = {n: getattr(part, n).detach().cpu().numpy() for n in ("weight", "bias", "running_mean", "running_var")}
    parameters = {MEAN: over_space(tensors["running_mean"]), VARIANCE: over_space(tensors["running_var"])}
    parameters |= {name: np.zeros(shape, np.float32) for name in (SHIFT, SLOPE)}
    statistics = Population(BatchStatistics(float(part.momentum), float(part.eps), each_step), shape, parameters)
    return statistics, Scale(tensors["weight"].reshape(per_channel), tensors["bias"].reshape(per_channel), learnable=True)


def _substitute(graph: Graph, node: str, name: str, chain: tuple[Operation, ...]) -> None:
    """Replace `node` by the operations of `chain`, of which the last gets the layer's `name`."""
    (before,), after = graph.incoming(node), graph.outgoing(node)
    graph.nx.remove_node(node)
    source = before
    for number, operation in enumerate(chain, start=1):
        wanted = name if number == len(chain) else f"{name}{STATISTICS}"
        new_node = graph.add(fresh_name(graph, wanted), operation)
        entry, leave = (operation.model.inputs[0], operation.model.outputs[0]) if isinstance(operation, Population) else ("in", "out")
        add_edge(graph, replace(source, target=new_node, target_port=entry))
        source = Edge(new_node, "", leave, "")
    for edge in after:
        add_edge(graph, replace(edge, source=source.source, source_port=source.source_port))


def written_statistics(label: str, value: Array, tensors: Mapping[str, Array]) -> tuple[str, Array] | None:
    """Return the tensor of the module to which the statistics `label` of the network belong, and its new value; None for other labels."""
    node, _, what = label.rpartition(".")
    name = f"{node.removesuffix(STATISTICS)}.running_{what}"
    if not node.endswith(STATISTICS) or what not in (MEAN, VARIANCE) or name not in tensors:
        return None
    return name, value.reshape(len(tensors[name]), -1)[:, 0].astype(tensors[name].dtype)
