"""Values that are constants to a module's gradient: observed while PyTorch's autograd runs it, and marked in the export.

The module runs under autograd, with inputs that require a gradient. If a value depends on such an input but requires no gradient itself,
it was cut: by ``detach``, ``data`` or ``no_grad``, or by a comparison outside of a surrogate function. The trace has an operator of snnc
at that place; in the file it is an ``Identity`` whose name says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from snnc.frontends.onnx.recovery.detaching import MARK, PARAMETER
from snnc.frontends.torch.autograd_functions import replacing_apply
from snnc.frontends.torch.exporting import OPSET, require_torch
from snnc.frontends.torch.spikingjelly_operators import reference_of

_DOMAIN: Final = "snnc"
_VALUE_INDEPENDENT: Final = ("_like", "new_", "zeros", "ones", "full", "empty", "rand", "eye", "arange", "tensor")
"""Substrings of the names of functions that use only shapes and types of their arguments."""
_LAYERS: Final = ("linear", "conv", "matmul", "mm", "norm", "lstm", "gru", "rnn", "einsum", "embedding", "bilinear")
"""Substrings of the names of functions that take parameters as weights."""
_NO_VALUES: Final = ("size", "dim", "numel", "is_floating_point", "__set__", "__len__")


@contextmanager
def marking(module: Any, inputs: tuple[Any, ...]) -> Iterator[None]:
    """Insert snnc's operators, under autograd, in code that runs inside: on values whose gradient is cut, and on parameters of neurons.

    Parameters
    ----------
    module
        The module; its parameters keep their names.
    inputs
        Its arguments, from :func:`needing_gradients`.
    """
    torch = require_torch()
    _define(torch)
    mode = _mode(torch, {id(p): name for name, p in module.named_parameters() if p.requires_grad}, {id(leaf) for leaf in inputs})

    def watched(call: Callable[..., Any], _: Any, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        with mode.inside():
            found = call(*arguments)
        return mode.marked(found, (arguments, named))

    with replacing_apply(watched), nullcontext() if torch.is_grad_enabled() else torch.enable_grad(), mode:
        yield


def needing_gradients(leaves: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments of a call such that all of floating type require gradients."""
    torch = require_torch()

    def needing(leaf: Any) -> Any:
        return leaf.detach().requires_grad_() if isinstance(leaf, torch.Tensor) and leaf.is_floating_point() else leaf

    return tuple(needing(leaf) for leaf in leaves)


def write_marks(file: Path) -> None:
    """Turn the operator of :func:`marking` in an exported file into identities with names that say so."""
    import onnx

    model = onnx.load(str(file), load_external_data=False)
    for number, node in enumerate(model.graph.node):
        if node.domain == _DOMAIN:
            label = next((a.s.decode() for a in node.attribute if a.name == "label"), None)
            name = f"{MARK}_{number}" if label is None else f"{PARAMETER}{label}"
            node.CopyFrom(onnx.helper.make_node("Identity", node.input, node.output, name=name))
    opsets = [o for o in model.opset_import if o.domain != _DOMAIN]
    del model.opset_import[:]
    model.opset_import.extend(opsets)
    onnx.save(model, str(file))


def clamped_parameters(file: Path) -> dict[str, tuple[float, float]]:
    """Return the parameters of neurons, by label, that an exported file with marks clips to constants, and the bounds."""
    import onnx

    graph = onnx.load(str(file), load_external_data=False).graph
    labels = {n.output[0]: n.name.removeprefix(PARAMETER) for n in graph.node if n.name.startswith(PARAMETER)}
    values = {t.name: t for t in graph.initializer}
    values |= {n.output[0]: a.t for n in graph.node if n.op_type == "Constant" for a in n.attribute if a.name == "value"}

    def bound(node: Any, k: int, default: float) -> float:
        if len(node.input) <= k or node.input[k] not in values:
            return default
        return float(onnx.numpy_helper.to_array(values[node.input[k]]).reshape(-1)[0])

    return {
        labels[n.input[0]]: (bound(n, 1, -np.inf), bound(n, 2, np.inf)) for n in graph.node if n.op_type == "Clip" and n.input[0] in labels
    }


def _define(torch: Any) -> None:
    """Register the operator with PyTorch, once in a process."""
    if hasattr(torch.ops.snnc, "detach"):
        return
    torch.library.define("snnc::detach", "(Tensor x) -> Tensor")
    torch.library.define("snnc::parameter", "(Tensor x, str label) -> Tensor")
    torch.library.impl("snnc::parameter", "CompositeExplicitAutograd", lambda x, label: x.clone())
    torch.library.impl("snnc::detach", "CompositeExplicitAutograd", lambda x: x.detach().clone())
    torch.onnx.register_custom_op_symbolic("snnc::detach", lambda g, x: g.op(f"{_DOMAIN}::Detach", x).setType(x.type()), OPSET)
    torch.onnx.register_custom_op_symbolic("snnc::parameter", _parameter, OPSET)


def translations(torch: Any) -> dict[Any, Any]:
    """Return the translation of the operator for PyTorch's newer exporter."""
    import onnx
    import onnxscript

    _define(torch)
    schema = onnx.defs.OpSchema(
        "Detach",
        _DOMAIN,
        1,
        inputs=[onnx.defs.OpSchema.FormalParameter("x", "T")],
        outputs=[onnx.defs.OpSchema.FormalParameter("y", "T")],
        type_constraints=[("T", ["tensor(float)", "tensor(double)", "tensor(float16)", "tensor(bool)"], "")],
    )
    operator = onnxscript.values.Op(onnxscript.values.Opset(_DOMAIN, 1), "Detach", schema)
    return {torch.ops.snnc.detach.default: operator}


def _parameter(g: Any, x: Any, label: Any) -> Any:
    return g.op(f"{_DOMAIN}::Parameter", x, label_s=label.node().s("value")).setType(x.type())


def _mode(torch: Any, labels: Mapping[int, str], inputs: set[int]) -> Any:
    tree = torch.utils._pytree
    base: Any = torch.overrides.TorchFunctionMode

    class Marking(base):  # type: ignore[misc]  # PyTorch may not be there when types are checked
        """Intercepts each function of PyTorch that Python calls, except those inside surrogate functions."""

        def __init__(self) -> None:
            super().__init__()
            self._depth = 0

        @contextmanager
        def inside(self) -> Iterator[None]:
            """Leave code that runs here unmarked: it has its own gradient."""
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1

        def __torch_function__(self, function: Any, types: Any, arguments: Any = (), named: Any = None) -> Any:
            named = named or {}
            if function is torch.Tensor.requires_grad.__set__:
                return None  # of a constant, which tracing then refuses; initial states need no gradient here
            reference = reference_of(function)
            if reference is not None and not self._depth:
                with self:
                    return reference(*arguments, **named)
            if torch.jit.is_tracing() and not self._depth:
                arguments, named = tree.tree_map(partial(self._named, not _multiplies(function)), (arguments, named))
            found = function(*arguments, **named)
            return found if _ignores_values(function) else self.marked(found, (arguments, named))

        def marked(self, found: Any, arguments: Any) -> Any:
            """Put the operator after the values in `found` that require no gradient although one in `arguments` does."""
            if self._depth or not any(isinstance(a, torch.Tensor) and a.requires_grad for a in tree.tree_leaves(arguments)):
                return found
            return tree.tree_map(self._mark, found)

        def _named(self, elementwise: bool, value: Any) -> Any:
            """Name a parameter of a neuron; a constant that requires a gradient loses it, because tracing refuses it."""
            if not isinstance(value, torch.Tensor) or not value.requires_grad or not value.is_leaf or id(value) in inputs:
                return value
            with torch._C.DisableTorchFunction():
                if isinstance(value, torch.nn.Parameter):
                    return torch.ops.snnc.parameter(value, labels[id(value)]) if elementwise and id(value) in labels else value
                return _untraced(torch, value)

        def _mark(self, value: Any) -> Any:
            kinds = isinstance(value, torch.Tensor) and (value.is_floating_point() or value.dtype == torch.bool)
            if not kinds or value.requires_grad:
                return value
            with torch._C.DisableTorchFunction():
                return torch.ops.snnc.detach(value)

    return Marking()


def _untraced(torch: Any, value: Any) -> Any:
    """Return a constant without its gradient, invisibly to the trace."""
    trace = torch._C._get_tracing_state()
    torch._C._set_tracing_state(None)
    try:
        return value.detach()
    finally:
        torch._C._set_tracing_state(trace)


def _multiplies(function: Any) -> bool:
    """Return whether a function takes parameters as weights of a layer, or reads none of their values."""
    name = getattr(function, "__name__", "")
    return name.startswith("__get") or name in _NO_VALUES or any(part in name for part in _LAYERS)


def _ignores_values(function: Any) -> bool:
    name = getattr(function, "__name__", "")
    return any(part in name for part in _VALUE_INDEPENDENT)
