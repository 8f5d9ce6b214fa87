"""Helpers that write small ONNX files."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

F = np.float32


class File:
    """Nodes and initializers of a graph under construction; values have consecutive or random names."""

    def __init__(self, rng=None, initializers=True):
        self.nodes, self.constants, self.count, self.rng, self.initializers = [], [], 0, rng, initializers

    def name(self):
        self.count += 1
        return f"v{self.count}" if self.rng is None else f"{self.rng.integers(1 << 40):x}_{self.count}"

    def __call__(self, op, *inputs, outputs=1, **attributes):
        names = [self.name() for _ in range(outputs)]
        given = [i if isinstance(i, str) else self.const(i) for i in inputs]
        self.nodes.append(helper.make_node(op, given, names, name=self.name(), **attributes))
        return names[0] if outputs == 1 else names

    def const(self, value):
        value = np.asarray(value)
        value = value.astype(F) if value.dtype == np.float64 else value
        name = self.name()
        if self.initializers:
            self.constants.append(numpy_helper.from_array(value, name))
        else:
            self.nodes.append(helper.make_node("Constant", [], [name], value=numpy_helper.from_array(value)))
        return name

    def stack(self, values, name, axis=0):
        rows = [self("Unsqueeze", v, np.array([axis])) for v in values]
        self.nodes.append(helper.make_node("Concat", rows, [name], axis=axis))

    def save(self, path, inputs, outputs, opset=17, shuffle=False):
        nodes = self._shuffled(set(inputs)) if shuffle else self.nodes
        graph = helper.make_graph(
            nodes,
            "g",
            [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()],
            [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in outputs],
            self.constants,
        )
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10), path)
        return path

    def _shuffled(self, known):
        """Return a random topological order."""
        known = known | {t.name for t in self.constants}
        left, order = list(self.nodes), []
        while left:
            ready = [n for n in left if all(i in known for i in n.input if i)]
            pick = ready[int(self.rng.integers(len(ready)))]
            left.remove(pick)
            order.append(pick)
            known.update(pick.output)
        return order


def leaky(f, x, mem, beta=0.9, threshold=1.0):
    """Write one step of snnTorch's Leaky; return (spike, membrane)."""
    reset = f("Cast", f("Greater", f("Sub", mem, threshold), 0.0), to=1)
    mem = f("Sub", f("Add", f("Mul", beta, mem), x), f("Mul", reset, threshold))
    return f("Cast", f("Greater", f("Sub", mem, threshold), 0.0), to=1), mem
