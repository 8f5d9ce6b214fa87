"""Derivatives of imported activations at a kink, which matter because currents are exactly 0 without spikes."""

import numpy as np
import pytest
import torch
from onnx_files import File, leaky

from snnc.backends.reference.engine import ReferenceEngine
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import SGD
from snnc.compiler.lowering.lower import lower
from snnc.compiler.neurons.surrogates.library import parse_surrogate
from snnc.frontends.onnx.load import load_onnx

F = torch.nn.functional
STEPS, WEIGHT = 4, np.array([[0.5, -0.25, 1.0, 0.75], [-0.5, 0.25, -1.0, 0.5]], np.float32)
"""Of inputs that fire in both rows, three products are 0."""
ACTIVATIONS = {
    "Relu": F.relu,
    "LeakyRelu": lambda x: F.leaky_relu(x, 0.01),
    "Elu": F.elu,
    "Selu": F.selu,
    "Celu": F.celu,
    "Softplus": F.softplus,
    "Softsign": F.softsign,
    "Mish": F.mish,
    "Clip": lambda x: torch.clamp(x, 0, 1),
    "Abs": torch.abs,
}


@pytest.mark.parametrize("op", ACTIVATIONS)
def test_derivatives_at_a_kink_are_those_of_torch(op, tmp_path):
    f, mem, values = File(), np.zeros((3, 4), np.float32), []
    bounds = [np.array(0, np.float32), np.array(1, np.float32)] if op == "Clip" else []
    for t in range(STEPS):
        current = f(op, f("MatMul", f("Gather", "x", np.array(t), axis=0), WEIGHT), *bounds)
        mem = leaky(f, current, mem, threshold=9.0)[1]
        values.append(mem)
    f.stack(values, "y")
    path = f.save(tmp_path / "m.onnx", {"x": [STEPS, 3, 2]}, ["y"], opset=18)
    surrogate = parse_surrogate("boxcar:0.01")  # none of the membranes comes near the threshold
    program = lower(load_onnx(path), loss=parse_loss("ce_mean_membrane"), optimizer=SGD(), surrogate=surrogate)
    x, labels = np.ones((STEPS, 3, 2)), np.array([0, 3, 1])
    weight = next(n for n, p in program.parameters.items() if p.label.endswith(".weight"))
    found = ReferenceEngine(program, np.float64).loss_and_gradients({program.inputs[0].id: x}, labels)[1][weight]

    wanted = torch.tensor(WEIGHT, dtype=torch.float64, requires_grad=True)
    v, total = torch.zeros(3, 4), torch.zeros(3, 4)
    for step in torch.tensor(x):
        v = 0.9 * v + ACTIVATIONS[op](step @ wanted)
        total = total + v
    F.cross_entropy(total / STEPS, torch.tensor(labels)).backward()
    np.testing.assert_allclose(found, wanted.grad.numpy().T, rtol=1e-6, atol=1e-9)
