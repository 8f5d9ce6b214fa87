"""Gradients of the reference backend compared with those of PyTorch."""

import numpy as np
import pytest
import snntorch.functional
import torch
from graph_oracle import TorchGraph

from snnc.backends.reference.engine import ReferenceEngine
from snnc.compiler.ir.graph import Output
from snnc.compiler.losses.optimizers import Adam
from snnc.compiler.lowering.lower import lower

TORCH_LOSSES = {
    "ce_count": snntorch.functional.ce_count_loss(),
    "ce_rate": lambda y, target: torch.stack([torch.nn.functional.cross_entropy(step, target) for step in y]).mean(),
    "ce_mean_membrane": lambda y, target: torch.nn.functional.cross_entropy(y.mean(0), target),
    "ce_max_membrane": snntorch.functional.ce_max_membrane_loss(),
    "mse_count": snntorch.functional.mse_count_loss(),
}


def relative_error(found, wanted):
    return np.linalg.norm(found - wanted) / max(np.linalg.norm(wanted), 1e-12)


def compare_gradients(graph, loss, dtype, output=None, surrogate=None, steps=12, batch=3):
    random = np.random.default_rng(5)
    program = lower(graph, loss=loss, loss_output=output, optimizer=Adam(), surrogate=surrogate)
    (info,) = program.inputs
    x = (random.random((steps, batch, *info.shape)) < 0.4).astype(dtype)
    label = next(o.label for o in program.outputs if o.id == program.loss_output)
    if label not in graph.nx:
        graph = graph.copy()
        node, _, port = label.rpartition(".")
        graph.add(label, Output())
        graph.connect(node, label, source_port=port)
    classes = next(o.shape[0] for o in program.outputs if o.id == program.loss_output)
    target = random.integers(0, classes, batch)
    found, gradients = ReferenceEngine(program, dtype).loss_and_gradients({info.id: x}, target)
    oracle = TorchGraph(graph, surrogate, torch.float64 if dtype == np.float64 else torch.float32)
    wanted = TORCH_LOSSES[loss.name](oracle({info.label: torch.tensor(x)})[label], torch.tensor(target))
    wanted.backward()
    assert found == pytest.approx(wanted.item(), rel=1e-5)
    by_label = {program.parameters[name].label: value for name, value in gradients.items()}
    wanted_gradients = {name: t.grad.numpy() for name, t in oracle.learnable().items() if t.grad is not None}
    late = by_label.keys() - wanted_gradients.keys()
    assert wanted_gradients.keys() <= by_label.keys()
    assert not any(by_label[name].any() for name in late), "what comes too late to reach the loss has no gradient"
    return {name: relative_error(by_label[name], value.reshape(by_label[name].shape)) for name, value in wanted_gradients.items()}
