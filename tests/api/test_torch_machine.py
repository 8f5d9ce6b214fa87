"""A network on a machine under autograd: outputs and gradients as those of the same network in PyTorch and on the processor."""

import numpy as np
import pytest
import torch
from module_nets import B, Same, T, close, network

import snnc
from snnc.errors import SnncError
from snnc.torch import Module

OPTIONS = {"surrogate": "fast_sigmoid:25"}


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    """The file of a machine of two chips with few tiles."""
    path = tmp_path_factory.mktemp("machine") / "two.toml"
    path.write_text('extends = "gc200"\nname = "two"\ntiles_per_chip = 3\nchips = 2\n')
    return str(path)


@pytest.fixture(scope="module")
def layer(machine):
    return Module(network(), target=machine, steps=T, batch=B, **OPTIONS)


def inputs(steps=T, batch=B, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=(steps, batch, 6)).astype(np.float32)) * 2


def loss(out):
    return out.square().mean() + out[2].sum()


@pytest.mark.parametrize(("steps", "batch"), [(T, B), (T - 2, B - 3)])
def test_outputs_and_gradients_equal_those_of_pytorch_and_of_the_processor(layer, steps, batch):
    cpu = Module(network(), **OPTIONS)
    same, x, found = Same(dict(layer.named_parameters())), inputs(steps, batch), []
    for module in (layer, same, cpu):
        module.zero_grad()
        out = module(x)
        loss(out).backward()
        found.append([out.detach(), *(p.grad.clone() for _, p in sorted(module.named_parameters(), key=lambda p: p[0].split(".")[-1]))])
    names = sorted(name for name, _ in layer.named_parameters())
    for name in names:
        close(dict(layer.named_parameters())[name].grad, same.values[name.replace(".", "_")].grad)
        close(dict(layer.named_parameters())[name].grad, dict(cpu.named_parameters())[name].grad)
    close(found[0][0], found[1][0])
    close(found[0][0], found[2][0])


def test_an_optimizer_of_pytorch_changes_the_weights_of_the_machine(layer):
    same, x = Same(dict(layer.named_parameters())), inputs(seed=1)
    start = {name: value.clone() for name, value in layer.state_dict().items()}
    for module in (layer, same):
        optimizer = torch.optim.Adam(module.parameters(), lr=1e-3)
        for _ in range(3):
            optimizer.zero_grad()
            loss(module(x)).backward()
            optimizer.step()
    for name, parameter in layer.named_parameters():
        assert not torch.equal(parameter, start[name])
        torch.testing.assert_close(parameter, same.values[name.replace(".", "_")], rtol=1e-3, atol=1e-4)
    with torch.no_grad():
        close(layer(x), same(x))


def test_a_pass_that_was_not_the_last_one_goes_back_all_the_same(layer):
    x = inputs(seed=2)
    layer.zero_grad()
    first, second = loss(layer(x)), loss(layer(x * 0.5))
    first.backward()
    second.backward()
    together = [p.grad.clone() for p in layer.parameters()]
    layer.zero_grad()
    for scale in (1.0, 0.5):
        loss(layer(x * scale)).backward()
    for parameter, wanted in zip(layer.parameters(), together, strict=True):
        torch.testing.assert_close(parameter.grad, wanted)


def test_what_a_machine_does_not_do_is_refused_with_a_code(layer, machine):
    with pytest.raises(SnncError, match="steps") as refused:
        Module(network(), target=machine, **OPTIONS)
    assert refused.value.code == "SNNC-E530"
    for option in ({"threads": 2}, {"truncate": 3}, {"memory": "1M"}, {"precision": "bfloat16"}):
        with pytest.raises(SnncError, match=next(iter(option))):
            Module(network(), target=machine, steps=T, **option)
    with pytest.raises(SnncError, match="batch"):
        Module(network(), batch=B)
    with pytest.raises(SnncError, match="machines"):
        Module(network(), target="reference")
    with pytest.raises(SnncError, match=f"up to {T} and {B}"):
        layer(inputs(T + 1, B))
    with pytest.raises(SnncError, match=f"up to {T} and {B}"):
        layer(inputs(T, B + 1))


def test_spikes_go_in_as_events_and_other_numbers_are_refused(machine):
    layer, cpu = (Module(network(), input_kind="spikes", **more, **OPTIONS) for more in ({"target": machine, "steps": T, "batch": B}, {}))
    spikes = (inputs() > 0.5).float()
    for module in (layer, cpu):
        loss(module(snnc.Events.from_dense(spikes))).backward()
    for parameter, wanted in zip(layer.parameters(), cpu.parameters(), strict=True):
        close(parameter.grad, wanted.grad)
    torch.testing.assert_close(layer(spikes), cpu(spikes), rtol=1e-4, atol=1e-5)
    with pytest.raises(SnncError, match="0 or 1"):
        layer(spikes * 2)
