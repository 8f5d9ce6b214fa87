"""A network on a machine under autograd: outputs and gradients equal those of PyTorch and of the CPU."""

import copy
import pickle

import numpy as np
import pytest
import torch
from module_nets import B, Same, T, close, network, three_outputs

import snnc
from snnc.backends.cuda.errors import CHECK_ON_HOST
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
    return Module(network(), target=machine, steps=T, batch=B, input_gradients=True, **OPTIONS)


def inputs(steps=T, batch=B, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=(steps, batch, 6)).astype(np.float32)) * 2


def loss(out):
    return out.square().mean() + out[2].sum()


def assert_same(modules, given):
    """Outputs of all, and gradients of parameters and of what goes in."""
    found = []
    for module in modules:
        module.zero_grad()
        x = given.clone().requires_grad_()
        out = module(x)
        loss(out).backward()
        found.append(
            (out.detach(), x.grad, *(p.grad for _, p in sorted((n.replace("values.", ""), p) for n, p in module.named_parameters())))
        )
    for other in found[1:]:
        for one, wanted in zip(found[0], other, strict=True):
            close(one, wanted)
    assert all(gradient.abs().max() > 0 for gradient in found[0])


@pytest.mark.representative("5-2")
@pytest.mark.parametrize(("steps", "batch"), [(T, B), (T - 2, B - 3)])
def test_outputs_and_gradients_equal_those_of_pytorch_and_of_the_processor(layer, steps, batch):
    cpu = Module(network(), input_gradients=True, **OPTIONS)
    same = Same(dict(layer.named_parameters()))
    assert_same([layer, same, cpu], inputs(steps, batch))
    for name, parameter in cpu.named_parameters():
        close(parameter.grad, same.values[name.replace(".", "_")].grad)


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


def test_a_copy_builds_its_program_when_it_first_runs(layer):
    other, x = pickle.loads(pickle.dumps(copy.deepcopy(layer))), inputs()
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.add_(0.1)
        moved = other(x)
        assert not torch.equal(moved, layer(x))
        close(moved, Same(dict(other.named_parameters()))(x))


@pytest.mark.wide
def test_float16_rounds_what_the_backward_pass_reads_of_the_past(machine):
    gradients, x = [], inputs()
    for precision in ("float32", "float16"):
        layer = Module(network(), target=machine, steps=T, batch=B, precision=precision, **OPTIONS)
        loss(layer(x)).backward()
        gradients.append(torch.cat([p.grad.flatten() for p in layer.parameters()]))
    error = torch.linalg.norm(gradients[1] - gradients[0]) / torch.linalg.norm(gradients[0])
    assert 0 < error < 2**-8


@pytest.mark.wide
def test_dropout_draws_the_masks_of_the_processor(machine):
    found, x = [], inputs()
    for options in ({"target": machine, "steps": T, "batch": B}, {}):
        net = snnc.Sequential(6, snnc.Dense(12, seed=1), snnc.LIF(beta=0.8), snnc.Dropout(0.5, 3), snnc.Dense(3, seed=2), snnc.LI(beta=0.9))
        layer = Module(net, input_kind="values", **options, **OPTIONS)
        trained = layer(x)
        loss(trained).backward()
        layer.eval()
        found.append([trained.detach(), layer(x).detach(), *(p.grad for p in layer.parameters())])
    for one, wanted in zip(*found, strict=True):
        close(one, wanted)
    assert not torch.equal(found[0][0], found[0][1])


@pytest.mark.representative("cuda")  # backends/poptorch/test_input_gradients.py has spikes that go in on a machine
@pytest.mark.parametrize("target", ["cpu", "cuda", "machine"])
def test_inputs_of_spikes_have_gradients_too(machine, monkeypatch, target):
    monkeypatch.setenv(CHECK_ON_HOST, "1")
    more = {"target": machine, "steps": T, "batch": B} if target == "machine" else {"target": target}
    layer = Module(network(), input_kind="spikes", input_gradients=True, gradient_window=-1000, **more, **OPTIONS)
    assert {c.kind for c in layer.program.connections if c.target == layer.program.populations[1].id} == {"dense"}
    assert all(layer.program.buffers[c.source_buffer].kind == "spikes" for c in layer.program.connections)
    spikes = (inputs() > 0.5).float()
    assert_same([layer, Same(dict(layer.named_parameters()))], spikes)
    with torch.no_grad():
        torch.testing.assert_close(layer(snnc.Events.from_dense(spikes)), layer(spikes))
    if target == "machine":
        with pytest.raises(SnncError, match="0 or 1") as refused:
            layer(spikes * 2)
        assert refused.value.code == "SNNC-E507"


@pytest.mark.wide
def test_a_gradient_window_does_not_cut_the_gradients_of_inputs():
    found, spikes = [], (inputs() > 0.5).float()
    for kind in ("spikes", "values"):
        layer = Module(network(), input_kind=kind, input_gradients=True, gradient_window=(-0.2, 0.3), **OPTIONS)
        x = spikes.clone().requires_grad_()
        layer.gradient_window = (-0.1, 0.2)
        loss(layer(x)).backward()
        found.append([x.grad, *(p.grad for p in layer.parameters())])
    for one, wanted in zip(*found, strict=True):
        close(one, wanted)


@pytest.mark.wide  # as in test_torch_copies.py on the processor
def test_convolutions_and_several_outputs_go_back_to_the_inputs(machine):
    random = torch.Generator().manual_seed(1)
    x, weights = (torch.randn(6, 3, *shape, generator=random) for shape in ((1, 4, 4), (8 + 8 + 3,)))
    found = []
    for options in ({"target": machine, "steps": 6, "batch": 3}, {}):
        layer = Module(three_outputs(), surrogate="fast_sigmoid:25", input_gradients=True, **options)
        given = x.clone().requires_grad_()
        out = torch.cat([o.flatten(2) for o in layer(given)], 2)
        (out * weights).sum().backward()
        found.append([out.detach(), given.grad, *(p.grad for p in layer.parameters())])
    for one, wanted in zip(*found, strict=True):
        close(one, wanted)


@pytest.mark.wide
def test_a_half_past_changes_gradients_as_it_does_on_the_processor(machine):
    half = [Module(network(), precision="float16", **OPTIONS, **sizes) for sizes in ({"target": machine, "steps": T, "batch": B}, {})]
    found = []
    for module in (*half, Module(network(), **OPTIONS)):
        module.zero_grad()
        loss(module(inputs())).backward()
        found.append({name: parameter.grad.clone() for name, parameter in module.named_parameters()})
    for name, gradient in found[0].items():
        close(gradient, found[1][name])
    rounded = sum(float((found[0][name] - gradient).norm() ** 2) for name, gradient in found[2].items())
    whole = sum(float(gradient.norm() ** 2) for gradient in found[2].values())
    # A slope of this surrogate is off by at most 2 of 2^11 parts.
    assert 1e-6**2 < rounded / whole < (2.0**-10) ** 2
