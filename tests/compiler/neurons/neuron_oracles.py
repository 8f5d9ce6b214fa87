"""Two ways to run a neuron over time: its kernel in the interpreter, and its equations in PyTorch with autograd."""

from __future__ import annotations

import numpy as np
import torch

from snnc.compiler.neurons.expression import Call, Number, Symbol
from snnc.compiler.neurons.interpret import evaluate


def spike_function(surrogate, inclusive=False):
    """A Heaviside step whose derivative is the surrogate."""

    class Step(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return (x >= 0 if inclusive else x > 0).to(x.dtype)

        @staticmethod
        def backward(ctx, gradient):
            (x,) = ctx.saved_tensors
            return gradient * torch_value(surrogate.derivative, {"x": x}, surrogate)

    return Step.apply


class Float16(torch.autograd.Function):
    """Rounding to float16 with the derivative 1."""

    @staticmethod
    def forward(ctx, x):
        return x.half().to(x.dtype)

    @staticmethod
    def backward(ctx, gradient):
        return gradient


def torch_value(expression, values, surrogate):
    match expression:
        case Number(value):
            return torch.tensor(value, dtype=next(iter(values.values())).dtype)
        case Symbol(name):
            return values[name]
        case Call(function, args):
            arguments = [torch_value(a, values, surrogate) for a in args]
            real = arguments[0].dtype
            functions = {
                "add": lambda a, b: a + b,
                "sub": lambda a, b: a - b,
                "mul": lambda a, b: a * b,
                "div": lambda a, b: a / b,
                "neg": lambda a: -a,
                "pow": torch.pow,
                "exp": torch.exp,
                "log": torch.log,
                "sqrt": torch.sqrt,
                "abs": torch.abs,
                "sign": torch.sign,
                "tanh": torch.tanh,
                "sigmoid": torch.sigmoid,
                "erf": torch.erf,
                "sin": torch.sin,
                "cos": torch.cos,
                "min": lambda a, b: torch.where(a <= b, a, b),
                "max": lambda a, b: torch.where(a >= b, a, b),
                "spike": spike_function(surrogate),
                "spike_ge": spike_function(surrogate, inclusive=True),
                "detach": lambda a: a.detach(),
                "float16": Float16.apply,
                "gt": lambda a, b: (a > b).to(real),
                "ge": lambda a, b: (a >= b).to(real),
                "where": lambda c, a, b: torch.where(c != 0, a, b),
            }
            return functions[function](*arguments)
    raise TypeError(expression)


class Case:
    """Random inputs, parameters, initial states and gradients for one model."""

    def __init__(self, model, ports=None, *, steps=12, batch=3, neurons=5, per_neuron=(), dtype=np.float64, seed=0, gain=0.8):
        random = np.random.default_rng(seed)
        self.model, self.ports, self.steps = model, tuple(ports or model.outputs), steps
        shape = (batch, neurons)
        self.inputs = [random.normal(0.4, gain, (steps, *shape)).astype(dtype) for _ in model.inputs]
        self.initial = [(value + random.normal(0, 0.3, shape)).astype(dtype) for value in model.states.values()]
        self.parameters = [
            (value * random.uniform(0.8, 1.2, neurons if name in per_neuron else ())).astype(dtype)
            if name in per_neuron
            else np.asarray(value, dtype=dtype)
            for name, value in model.parameters.items()
        ]
        self.d_outputs = [random.normal(size=(steps, *shape)).astype(dtype) for _ in self.ports]
        self.d_final = [random.normal(size=shape).astype(dtype) for _ in model.states]


def run_kernel(kernel, case):
    """Forward and backward through time; only what the contract of Kernel allows is handed to the adjoint."""
    dtype = case.inputs[0].dtype
    shape = case.inputs[0].shape[1:]
    parameters = dict(zip(kernel.parameters, case.parameters, strict=True))
    state = dict(zip(kernel.states, case.initial, strict=True))
    slots = [dict(state)]
    saved, outputs = [], []
    for t in range(case.steps):
        environment = {**parameters, **{f"{s}_prev": v for s, v in state.items()}}
        environment |= {name: current[t] for name, current in zip(kernel.inputs, case.inputs, strict=True)}
        found = evaluate(kernel.forward, environment)
        assert all(value.dtype == dtype for value in found.values())
        state = {s: np.broadcast_to(found[s], shape) for s in kernel.states}
        slots.append(state)
        saved.append({name: {**environment, **found}[name] for name in kernel.saved})
        outputs.append([np.broadcast_to(found[o], shape) for o in kernel.outputs])

    d_state = dict(zip(kernel.states, case.d_final, strict=True))
    d_inputs = [np.zeros_like(current) for current in case.inputs]
    d_parameters = [np.zeros_like(p) for p in case.parameters]
    for t in reversed(range(case.steps)):
        environment = {**parameters, **saved[t], **{f"d_{s}": d for s, d in d_state.items()}}
        for s in kernel.history:
            environment |= {f"{s}_prev": slots[t][s], s: slots[t + 1][s]}
        environment |= {f"d_{o}": d[t] for o, d in zip(kernel.outputs, case.d_outputs, strict=True)}
        found = evaluate(kernel.backward, environment)
        d_state = {s: np.broadcast_to(found[f"d_{s}_prev"], shape) for s in kernel.states}
        for n, name in enumerate(kernel.inputs):
            d_inputs[n][t] = found[f"d_{name}"]
        for n, name in enumerate(kernel.parameters):
            if name in kernel.learnable:
                gradient = np.broadcast_to(found[f"d_{name}"], shape)
                d_parameters[n] += gradient.sum() if d_parameters[n].ndim == 0 else gradient.sum(0)
    learned = [d for d, name in zip(d_parameters, kernel.parameters, strict=True) if name in kernel.learnable]
    return np.array(outputs).swapaxes(0, 1), [*d_inputs, *d_state.values(), *learned]


def run_torch(case, surrogate, learnable=()):
    """The author's equations, run one after another; gradients by autograd."""
    model = case.model

    def leaf(array):
        return torch.tensor(array, requires_grad=True)

    currents = [leaf(current) for current in case.inputs]
    initial = [leaf(np.ascontiguousarray(s)) for s in case.initial]
    parameters = [leaf(p) for p in case.parameters]
    values = dict(zip(model.states, initial, strict=True)) | dict(zip(model.parameters, parameters, strict=True))
    outputs = [[] for _ in case.ports]
    loss = 0
    for t in range(case.steps):
        values |= {name: current[t] for name, current in zip(model.inputs, currents, strict=True)}
        for assignment in model.equations:
            values[assignment.target] = torch_value(assignment.value, values, surrogate)
        for n, port in enumerate(case.ports):
            value = values[port].expand(case.inputs[0].shape[1:])
            outputs[n].append(value.detach().numpy())
            loss = loss + (value * torch.tensor(case.d_outputs[n][t])).sum()
    for state, gradient in zip(model.states, case.d_final, strict=True):
        loss = loss + (values[state] * torch.tensor(gradient)).sum()
    if loss.requires_grad:
        loss.backward()
    learned = [p for p, name in zip(parameters, model.parameters, strict=True) if name in learnable]
    leaves = [*currents, *initial, *learned]
    return np.array(outputs), [np.zeros(x.shape) if x.grad is None else x.grad.numpy() for x in leaves]


def relative_error(found, expected):
    """Norm of the difference over the norm of `expected`, both arrays together."""
    difference = np.sqrt(sum(float(np.sum((np.asarray(f, float) - e) ** 2)) for f, e in zip(found, expected, strict=True)))
    size = np.sqrt(sum(float(np.sum(np.asarray(e, float) ** 2)) for e in expected))
    return difference / size if size else difference
