"""Compare gradients of an imported module with those of its own autograd: inputs, weights and neurons' parameters."""

import numpy as np
from frameworks import torch

from snnc.backends.native.adjoint import with_input_gradients
from snnc.backends.reference.backward import run_backward
from snnc.backends.reference.engine import ReferenceEngine
from snnc.compiler.ir.graph import Output
from snnc.compiler.losses.external import ExternalLoss
from snnc.compiler.losses.optimizers import SGD
from snnc.compiler.lowering.lower import lower
from snnc.compiler.neurons.surrogates.library import parse_surrogate
from snnc.frontends.torch.forms import FUNCTIONS, blocks, forms
from snnc.frontends.torch.naming import arrays
from snnc.frontends.torch.weights import _biases_of_weight, _with_zeros

CLOSE = 1e-4
"""The largest difference, relative to the largest gradient of the same tensor."""
CANCELLED = 0.03
"""Gradients this much smaller than the network's largest are sums that cancel, which float32 computes less accurately."""


def of_framework(run, module, x, weights):
    """Return the output of a module, and gradients of ``sum(weights * output)`` by its own autograd; the input's has the key ""."""
    inputs = torch.from_numpy(x).requires_grad_()
    module.zero_grad(set_to_none=True)
    found = run(module, inputs)
    (found * torch.from_numpy(weights)).sum().backward()
    gradients = {n: p.grad.numpy().copy() for n, p in module.named_parameters() if p.grad is not None}
    return found.detach().numpy(), {"": inputs.grad.numpy(), **gradients}


def of_snnc(graph, x, weights, surrogate):
    """Return the same for a graph on the reference backend, in float64; the keys of gradients are the labels of parameters."""
    relayed, relays = with_input_gradients(graph)
    output = next(name for name, _ in graph.of_type(Output))
    program = lower(relayed, loss=ExternalLoss(tuple(relays.values())), loss_output=output, optimizer=SGD(0.0), surrogate=surrogate)
    engine = ReferenceEngine(program, np.float64)
    given = {program.inputs[0].id: x}
    memory = engine.run_sequence(given, {})
    record = program.outputs[0].record
    found = memory[record].reshape(weights.shape)
    memory[f"d_{record}"][:] = weights.reshape(memory[record].shape)
    relay = next(p.id for p in program.populations if p.label in relays.values())
    steps = []
    for t in reversed(range(memory.steps)):
        for operation in program.backward:
            run_backward(operation, memory, t)
        steps.append(memory[f"d_{relay}_i0"].copy())
    gradients = {p.label: memory[f"d_{name}"] for name, p in program.parameters.items() if f"d_{name}" in program.buffers}
    return found, {"": np.stack(steps[::-1]).reshape(x.shape), **_with_zeros(program, gradients)}


def assert_same_gradients(module, graph, run, x, surrogate, seed=1):
    """Compare every gradient that autograd computes: of the input, of weights, and of neurons' parameters."""
    surrogate = parse_surrogate(surrogate) if isinstance(surrogate, str) else surrogate
    with torch.no_grad():
        shape = run(module, torch.from_numpy(x)).shape
    weights = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
    wanted, theirs = of_framework(run, module, x, weights)
    found, ours = of_snnc(graph, x, weights, surrogate)
    assert np.ptp(wanted) > 0
    np.testing.assert_allclose(found, wanted, atol=1e-4, rtol=1e-4)
    tensors = arrays(module)
    program = lower(graph)
    values = _with_zeros(program, {p.label: p.value for p in program.parameters.values()})
    largest = max(np.abs(gradient).max() for gradient in theirs.values())
    for name, gradient in theirs.items():
        mine = ours[""] if not name else _of(name, tensors[name], values, ours)
        mine = _of_blocks(name, tensors[name], values, ours, tensors) if mine is None else mine
        scale = max(np.abs(gradient).max(), CANCELLED * largest)
        if mine is None:
            assert not gradient.any(), f"{name} learns in the module only: {gradient}"
            continue
        gap = np.abs(mine.reshape(gradient.shape) - gradient).max()
        assert gap <= CLOSE * max(scale, 1e-6), f"gradient of {name or 'the input'}: {gap / max(scale, 1e-30):.3g} off\n{mine}\n{gradient}"
    assert np.abs(theirs[""]).max() > 0


def _of(name, tensor, values, ours):
    """Return our gradient of the tensor `name` of the module, by the chain rule where the network contains a function of it."""
    found = [
        (label, form)
        for label, value in values.items()
        if label in ours
        for form in forms(name, tensor, value=value, original=value)
        if label == name or label.rpartition(".")[2] in (form.parameter, "weight", "bias")
    ]
    exact = [(label, form) for label, form in found if label == name or label == f"{form.owner}.{form.parameter}"] or found
    if not exact:
        return None
    label, form = exact[0]
    gradient = ours[label]
    if form.function:
        forward = FUNCTIONS[form.function][0]
        step = 1e-6
        slope = (forward(tensor.astype(np.float64) + step) - forward(tensor.astype(np.float64) - step)) / (2 * step)
        gradient = gradient * slope
    return (gradient.T if form.transposed else gradient).reshape(tensor.shape)


def _of_blocks(name, tensor, values, ours, tensors):
    """Return our gradient of a tensor whose blocks of rows are separate weights (the gates of a cell), or None if it is not one."""
    found = np.zeros(tensor.shape)
    rows = set()
    for label, value in values.items():
        fitting = [f for n, t in tensors.items() for f in blocks(n, t, value=value, original=value)]
        fitting = _biases_of_weight(fitting, label.rpartition(".")[0], values, tensors) or fitting
        for form in fitting:
            if form.tensor == name and label in ours and form.rows is not None:
                found[slice(*form.rows)] += ours[label].T if form.transposed else ours[label]
                rows.add(form.rows)
    return found if rows else None
