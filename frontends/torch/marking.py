"""Mark the values of an exported PyTorch module through which no gradient flows, and label its neuron parameters.

The module runs under autograd with inputs that require a gradient. A value that depends on such an input but requires no gradient was
detached: by ``detach``, ``data`` or ``no_grad``, or by a comparison outside a surrogate function. The export contains the operator
``snnc::Detach`` after that value; :func:`write_marks` replaces it with an ``Identity`` whose name marks the value.
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
from snnc.frontends.torch.exporting import OPSET, reference_of, require_torch

_DOMAIN: Final = "snnc"
_VALUE_INDEPENDENT: Final = ("_like", "new_", "zeros", "ones", "full", "empty", "rand", "eye", "arange", "tensor")
"""Substrings of names of functions that only read the shapes and types of their arguments."""
_LAYERS: Final = ("linear", "conv", "matmul", "mm", "norm", "lstm", "gru", "rnn", "einsum", "embedding", "bilinear")
"""Substrings of names of functions that use parameters as the weights of a layer."""
_ATTRIBUTE_FUNCTIONS: Final = ("size", "dim", "numel", "is_floating_point", "__set__", "__len__")
"""Names of functions that read or set attributes of a tensor without computing with its values."""


@contextmanager
def marking(module: Any, inputs: tuple[Any, ...]) -> Iterator[None]:
    """Run the block under autograd, and insert snnc's operators after detached values and neuron parameters.

    `inputs` are the arguments of the call of `module`, from :func:`needing_gradients`; parameter names of `module` become labels.
    """
    torch = require_torch()
    _define(torch)
    mode = _marking_mode(torch, {id(p): name for name, p in module.named_parameters() if p.requires_grad}, {id(leaf) for leaf in inputs})

    def call_function(call: Callable[..., Any], _: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        with mode.disabled():
            result = call(*args)
        return mode.mark_detached(result, (args, kwargs))

    with replacing_apply(call_function), nullcontext() if torch.is_grad_enabled() else torch.enable_grad(), mode:
        yield


def needing_gradients(leaves: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments of a call, with floating-point tensors detached and requiring a gradient."""
    torch = require_torch()
    floating = [isinstance(leaf, torch.Tensor) and leaf.is_floating_point() for leaf in leaves]
    return tuple(leaf.detach().requires_grad_() if needs else leaf for leaf, needs in zip(leaves, floating, strict=True))


def write_marks(file: Path) -> None:
    """Replace snnc's operators in an exported file by ``Identity`` nodes whose names mark detached values and label parameters."""
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
    """Return the constant bounds to which a module clips neuron parameters, by label; `file` is its exported, marked file."""
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
    """Register snnc's operators with PyTorch, once per process."""
    if hasattr(torch.ops.snnc, "detach"):
        return
    torch.library.define("snnc::detach", "(Tensor x) -> Tensor")
    torch.library.define("snnc::parameter", "(Tensor x, str label) -> Tensor")
    torch.library.impl("snnc::parameter", "CompositeExplicitAutograd", lambda x, label: x.clone())
    torch.library.impl("snnc::detach", "CompositeExplicitAutograd", lambda x: x.detach().clone())
    torch.onnx.register_custom_op_symbolic("snnc::detach", lambda g, x: g.op(f"{_DOMAIN}::Detach", x).setType(x.type()), OPSET)
    torch.onnx.register_custom_op_symbolic(
        "snnc::parameter", lambda g, x, label: g.op(f"{_DOMAIN}::Parameter", x, label_s=label.node().s("value")).setType(x.type()), OPSET
    )


def translations(torch: Any) -> dict[Any, Any]:
    """Return the translation of ``snnc::detach`` for PyTorch's dynamo exporter, which does not support parameter labels."""
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


def _marking_mode(torch: Any, labels: Mapping[int, str], inputs: set[int]) -> Any:
    """Return the context manager that intercepts calls; `labels` are those of parameters, and `inputs` the inputs, both by ``id``."""
    tree = torch.utils._pytree
    base: Any = torch.overrides.TorchFunctionMode

    class Marking(base):  # type: ignore[misc]  # PyTorch may not be installed when types are checked
        """Intercepts calls of PyTorch functions from Python, except inside functions with their own backward pass."""

        def __init__(self) -> None:
            super().__init__()
            self._disabled = 0

        @contextmanager
        def disabled(self) -> Iterator[None]:
            """Insert no operators in the block, which runs a function with its own backward pass."""
            self._disabled += 1
            try:
                yield
            finally:
                self._disabled -= 1

        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            if function is torch.Tensor.requires_grad.__set__:
                return None  # tracing refuses constants that require a gradient, and initial states do not need one
            reference = reference_of(function)  # operators of SpikingJelly are replaced by their reference code in PyTorch
            if reference is not None and not self._disabled:
                with self:
                    return reference(*args, **kwargs)
            if torch.jit.is_tracing() and not self._disabled:
                args, kwargs = tree.tree_map(partial(self._label, _may_read_neuron_parameters(function)), (args, kwargs))
            result = function(*args, **kwargs)
            return result if _ignores_values(function) else self.mark_detached(result, (args, kwargs))

        def mark_detached(self, result: Any, arguments: Any) -> Any:
            """Insert ``snnc::detach`` after values in `result` that require no gradient, if a value in `arguments` does."""
            if self._disabled or not any(isinstance(a, torch.Tensor) and a.requires_grad for a in tree.tree_leaves(arguments)):
                return result
            return tree.tree_map(self._mark, result)

        def _label(self, may_be_neuron_parameter: bool, value: Any) -> Any:
            """Insert ``snnc::parameter`` after a neuron parameter; detach other leaf tensors with gradients, which tracing refuses."""
            if not isinstance(value, torch.Tensor) or not value.requires_grad or not value.is_leaf or id(value) in inputs:
                return value
            with torch._C.DisableTorchFunction():
                if isinstance(value, torch.nn.Parameter):
                    return torch.ops.snnc.parameter(value, labels[id(value)]) if may_be_neuron_parameter and id(value) in labels else value
                return _untraced(torch, value)

        def _mark(self, value: Any) -> Any:
            markable = isinstance(value, torch.Tensor) and (value.is_floating_point() or value.dtype == torch.bool)
            if not markable or value.requires_grad:
                return value
            with torch._C.DisableTorchFunction():
                return torch.ops.snnc.detach(value)

    return Marking()


def _untraced(torch: Any, value: Any) -> Any:
    """Detach a constant without recording the operation in the trace."""
    trace = torch._C._get_tracing_state()
    torch._C._set_tracing_state(None)
    try:
        return value.detach()
    finally:
        torch._C._set_tracing_state(trace)


def _may_read_neuron_parameters(function: Any) -> bool:
    """Return whether a function may compute with neuron parameters: it is no layer, and does not only read or set attributes."""
    name = getattr(function, "__name__", "")
    return not (name.startswith("__get") or name in _ATTRIBUTE_FUNCTIONS or any(part in name for part in _LAYERS))


def _ignores_values(function: Any) -> bool:
    name = getattr(function, "__name__", "")
    return any(part in name for part in _VALUE_INDEPENDENT)
