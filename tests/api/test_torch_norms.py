"""Batch normalisations in a module train, and run, as those of PyTorch."""

import copy

import numpy as np
import pytest
import torch
from normalised_nets import NORM, NORM_OF_STEPS, PLACES, Theirs, data, network

import snnc
from snnc.backends.cuda.errors import CHECK_ON_HOST
from snnc.torch import Module

NORMS = {"bn1": "input_to_lif_batchnorm_statistics", "bn2": "lif_to_lif2_batchnorm_statistics"}


@pytest.fixture(
    scope="module",
    params=[("cpu", False), ("cpu", True), ("cuda", False), ("cuda", True)],
    ids=lambda p: f"{p[0]}-{'each' if p[1] else 'all'}",
)
def made(request):
    """A module, whether each step has statistics of its own, and the module's state before any training."""
    target, each_step = request.param
    norm = NORM_OF_STEPS if each_step else NORM
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CHECK_ON_HOST, "1")
        module = Module(network(norm=norm), target=target, surrogate="fast_sigmoid", input_gradients=True, input_kind="values")
        yield module, each_step, copy.deepcopy(module.state_dict())


@pytest.fixture
def layers(made):
    """The module and the same network in PyTorch."""
    module, each_step, start = made
    module.load_state_dict(start)
    module.zero_grad()
    return module.train(), Theirs({name: value.numpy() for name, value in start.items()}, each_step)


def inputs(seed=0):
    x, y = data(seed)
    return torch.tensor(x.swapaxes(0, 1).copy()), torch.tensor(y)


def loss_of(module, x, y):
    found = module(x)
    return torch.nn.functional.cross_entropy(found.mean(0) if found.ndim == 3 else found, y)


def assert_same_state(module, theirs):
    state = module.state_dict()
    for name, ours in PLACES.items():
        wanted = theirs.state_dict()[name]
        torch.testing.assert_close(state[ours].reshape(wanted.shape), wanted, atol=1e-4, rtol=1e-4)
    for norm, ours in NORMS.items():
        for what in ("mean", "var"):
            wanted = theirs.state_dict()[f"{norm}.running_{what}"]
            found = state[f"{ours}.{what}"].reshape(len(wanted), -1)
            torch.testing.assert_close(found, wanted[:, None].expand_as(found), atol=1e-5, rtol=1e-4)


@pytest.mark.representative("cpu-all", "cpu-each")  # backends/training/test_batch_norm.py trains them on a GPU
def test_updates_running_statistics_and_eval_mode_equal_those_of_pytorch(layers):
    optimizers = [torch.optim.SGD(module.parameters(), 0.5) for module in layers]
    for seed in range(3):
        x, y = inputs(seed)
        x, losses = x.requires_grad_(), []
        slopes = []
        for module, optimizer in zip(layers, optimizers, strict=True):
            optimizer.zero_grad()
            loss = loss_of(module, x, y)
            (slope,) = torch.autograd.grad(loss, x, retain_graph=True)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            slopes.append(slope)
        assert losses[0] == pytest.approx(losses[1], abs=1e-5)
        torch.testing.assert_close(*slopes, atol=1e-5, rtol=1e-4)
    assert_same_state(*layers)
    x, y = inputs(7)
    for module in layers:
        module.eval()
    torch.testing.assert_close(layers[0](x).mean(0), layers[1](x), atol=1e-4, rtol=1e-4)
    for module in layers:
        module.zero_grad()
        loss_of(module, x, y).backward()
    gradients = {name: dict(layers[1].named_parameters())[name].grad for name in PLACES}
    for name, ours in PLACES.items():
        found = dict(layers[0].named_parameters())[ours].grad
        torch.testing.assert_close(found.reshape(gradients[name].shape), gradients[name], atol=1e-5, rtol=1e-4)
    assert_same_state(*layers)


@pytest.mark.representative("cpu-all", "cpu-each", "cuda-all")
def test_two_batches_before_their_backward_passes_update_the_running_statistics_twice(layers):
    for module in layers:
        first, second = (loss_of(module, *inputs(seed)) for seed in (1, 2))
        first.backward()
        second.backward()
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.sub_(0.5 * parameter.grad)
    assert_same_state(*layers)


def test_dropout_masks_apply_while_statistics_are_measured():
    net = network(dropout=True)
    with snnc.compile(net, "cpu", loss="ce_mean_membrane", optimizer=snnc.SGD(0.5), surrogate="fast_sigmoid") as session:
        module = Module(net, surrogate="fast_sigmoid")
        x, y = data()
        session.fit(x, y, batch=len(x), shuffle=False)
        optimizer = torch.optim.SGD(module.parameters(), 0.5)
        loss_of(module, torch.tensor(x.swapaxes(0, 1).copy()), torch.tensor(y)).backward()
        optimizer.step()
        for name, value in session.state_dict().items():
            if not name.endswith(".mask"):
                np.testing.assert_allclose(module.state_dict()[name].numpy(), value, atol=1e-5, err_msg=name)


def test_copies_keep_the_running_statistics():
    module = Module(network(), surrogate="fast_sigmoid")
    x, y = inputs()
    loss_of(module, x, y).backward()
    other = copy.deepcopy(module)
    for one in (module, other):
        loss_of(one, x, y).backward()
        one.eval()
    assert torch.equal(module(x), other(x))
    assert module.state_dict()[f"{NORMS['bn1']}.mean"].any()
