"""Every loss, regulariser and optimiser of the table compared with snnTorch and PyTorch: values, gradients, updates.

The snnTorch network is trained in double precision by autograd and torch.optim; snnc uses the reference in double precision.
"""

import numpy as np
import pytest

pytest.importorskip("snntorch", reason="snntorch is not installed: nothing to compare with")

import snntorch
from frameworks import torch
from torch_losses import targets_for, whole_loss
from torch_updates import of_group, torch_optimizer
from wide import examples

import snnc
from snnc.backends.reference.engine import ReferenceEngine
from snnc.checks.training_cells import loss_rows, optimizer_rows
from snnc.compiler.losses import parse_loss
from snnc.compiler.lowering.lower import lower
from snnc.compiler.neurons.surrogates.library import atan
from snnc.options.optimizers import parse_optimizer

STEPS, BATCH, INPUTS, HIDDEN, OUTPUTS = 7, 6, 10, 12, 12
UPDATES = examples(4, 20)
"""Each has other inputs and targets. The fourth shows what an optimiser keeps of the first three."""
CLOSE = 1e-4
USUAL_LOSS, USUAL_OPTIMIZER = "ce_mean_membrane", "sgd:0.1"


class Atan(torch.autograd.Function):
    """snntorch.surrogate.atan(2.0) in the precision of its input: theirs has spikes of float32."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x > 0).to(x.dtype)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient / (1 + (torch.pi * x) ** 2)


class Theirs(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.fc1, self.fc2 = torch.nn.Linear(INPUTS, HIDDEN), torch.nn.Linear(HIDDEN, OUTPUTS)
        self.lif1, self.lif2 = (snntorch.Leaky(beta=beta, spike_grad=Atan.apply) for beta in (0.9, 0.8))
        with torch.no_grad():
            self.fc1.weight *= 3
            self.fc2.weight *= 3
        self.double()

    def forward(self, x):
        mem1, mem2 = self.lif1.init_leaky(), self.lif2.init_leaky()
        found = []
        for current in self.fc1(x):
            s1, mem1 = self.lif1(current, mem1)
            s2, mem2 = self.lif2(self.fc2(s1), mem2)
            found.append((s1, mem1, s2, mem2))
        return [torch.stack(each) for each in zip(*found, strict=True)]


def ours(loss, optimizer, module):
    """The same network, with the same weights, and the tensors of the module by the labels of its parameters."""
    net = snnc.Network("net")
    spikes = net.input(INPUTS, kind="spikes")
    hidden = net.population(HIDDEN, snnc.LIF(beta=0.9), name="hidden")
    out = net.population(OUTPUTS, snnc.LIF(beta=0.8), name="out")
    net.connect(spikes, hidden, snnc.Dense(), name="fc1")
    net.connect(hidden, out, snnc.Dense(), name="fc2")
    program = lower(net.graph(), loss=parse_loss(loss), optimizer=optimizer, surrogate=atan(2.0), steps=STEPS)
    engine = ReferenceEngine(program, np.float64)
    tensors = {f"{name}.{kind}": getattr(getattr(module, name), kind) for name in ("fc1", "fc2") for kind in ("weight", "bias")}
    names = {p.label: p.name for p in program.parameters.values() if p.label in tensors}
    assert names.keys() == tensors.keys()
    engine.set_parameters({names[label]: tensor.detach().numpy().copy() for label, tensor in tensors.items()})
    return engine, tensors, names


def update_theirs(optimizer, settings, tensors):
    """What torch.optim leaves to others: clipping, L1 and bounds; a scaled loss changes no update."""
    for label, tensor in tensors.items():
        if any(group.frozen and label.endswith(".bias") for group in settings.groups):
            tensor.grad.zero_()
    if settings.clip_value is not None:
        torch.nn.utils.clip_grad_value_(tensors.values(), settings.clip_value)
    if settings.clip_norm is not None:
        torch.nn.utils.clip_grad_norm_(tensors.values(), settings.clip_norm)
    with torch.no_grad():
        for label, tensor in tensors.items():
            tensor.grad += of_group(settings, label, "l1") * tensor.sign()
        optimizer.step()
        for label, tensor in tensors.items():
            if (bound := of_group(settings, label, "bound")) is not None:
                tensor.clamp_(-bound, bound)


def check(loss, optimizer, updates):
    settings, module = parse_optimizer(optimizer), Theirs()
    engine, tensors, names = ours(loss, settings, module)
    frozen = [label for label in tensors if any(group.frozen for group in settings.groups) and label.endswith(".bias")]
    theirs = torch_optimizer(settings, {label: tensor for label, tensor in tensors.items() if label not in frozen})
    start = {label: tensor.detach().clone() for label, tensor in tensors.items()}
    for number in range(updates):
        random = np.random.default_rng(number)
        x = (random.random((STEPS, BATCH, INPUTS)) < 0.4).astype(np.float64)
        target = targets_for(loss, random, STEPS, BATCH, OUTPUTS)
        module.zero_grad()
        value = whole_loss(loss, *module(torch.tensor(x)), target)
        value.backward()
        gradients = {label: tensor.grad.clone() for label, tensor in tensors.items()}
        update_theirs(theirs, settings, tensors)
        assert engine.train_batch({"x0": x}, target, settings.lr) == pytest.approx(value.item(), abs=CLOSE), number
        found = engine.gradients()
        for label, name in names.items():
            if name in found:
                np.testing.assert_allclose(found[name], gradients[label].numpy(), atol=CLOSE, err_msg=f"{label}, update {number}")
            np.testing.assert_allclose(engine.get_parameters()[name], tensors[label].detach().numpy(), atol=CLOSE, err_msg=label)
    assert max(float((tensors[label].detach() - start[label]).abs().max()) for label in tensors) > 10 * CLOSE


def rare(loss):
    """Squared errors with lengths of sequences: cross entropies with lengths show the same of the statistics."""
    return loss.startswith("mse") and "lengths" in loss


@pytest.mark.parametrize("loss", [pytest.param(loss, marks=pytest.mark.wide) if rare(loss) else loss for loss in loss_rows()])
def test_updates_with_every_loss_are_those_of_snntorch(loss):
    check(loss, USUAL_OPTIMIZER, UPDATES)


@pytest.mark.parametrize("optimizer", optimizer_rows())
def test_updates_with_every_optimizer_are_those_of_torch(optimizer):
    check(USUAL_LOSS, optimizer, UPDATES)


@pytest.mark.wide
@pytest.mark.parametrize("loss", loss_rows())
def test_two_updates_with_every_loss_and_every_optimizer(loss):
    for optimizer in optimizer_rows():
        check(loss, optimizer, 2)
