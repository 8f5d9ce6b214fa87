"""Compiled modules that are copied, pickled and sent to other processes, and modules with several outputs."""

import copy
import gc
import io
import pickle
import subprocess
import sys
import tempfile

import pytest
import torch
from module_nets import three_outputs as network
from torch_spikes import fast_sigmoid_spike

import snnc
from snnc.errors import SnncError
from snnc.torch import Module

T, B = 6, 3
OPTIONS = {"surrogate": "fast_sigmoid:25", "input_gradients": True}
step = fast_sigmoid_spike()


class Same(torch.nn.Module):
    """The network of :func:`network`, step by step."""

    def __init__(self, module):
        super().__init__()
        self.values = torch.nn.ParameterDict(
            {n.replace(".", "_"): torch.nn.Parameter(p.detach().clone()) for n, p in module.named_parameters()}
        )

    def forward(self, x):
        p = self.values
        v = s = m = torch.zeros(())
        found = []
        for frame in x:
            current = torch.nn.functional.conv2d(frame, p["input_to_hidden_weight"], p["input_to_hidden_bias"])
            v = 0.9 * v * (1 - s.detach()) + current
            s = step(v - 1)
            m = 0.8 * m + s.flatten(1) @ p["hidden_to_readout_weight"].t() + p["hidden_to_readout_bias"]
            found.append((s, v, m))
        return tuple(torch.stack(parts) for parts in zip(*found, strict=True))


@pytest.fixture
def x():
    return torch.randn((T, B, 1, 4, 4), generator=torch.Generator().manual_seed(0)) * 2


def losses(outputs):
    spikes, membrane, classes = outputs
    return {
        "spikes": spikes[2:].square().mean(),
        "membrane": membrane.cos().mean(),
        "classes": classes[-1].square().mean(),
        "all": spikes.mean() + (membrane * torch.linspace(0, 1, T)[:, None, None, None, None]).sum() + classes.std(),
    }


def close(found, wanted):
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


def gradients(module, x, loss):
    x = x.clone().requires_grad_()
    module.zero_grad()
    losses(module(x))[loss].backward()
    return {
        "x": x.grad,
        **{n.removeprefix("values.").replace(".", "_"): p.grad for n, p in module.named_parameters() if p.grad is not None},
    }


# ---- several outputs -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["spikes", "membrane", "classes", "all"])
def test_several_outputs_are_a_tuple_and_gradients_flow_through_each(x, loss):
    module = Module(network(), **OPTIONS)
    same = Same(module)
    found, wanted = module(x), same(x)
    assert module.outputs == ("spikes", "membrane", "classes")
    assert isinstance(found, tuple)
    for one, other in zip(found, wanted, strict=True):
        close(one, other)
    ours, theirs = gradients(module, x, loss), gradients(same, x, loss)
    for name, wanted in theirs.items():
        close(ours.get(name, torch.zeros_like(wanted)), wanted)


def test_outputs_are_chosen_and_ordered_by_name(x):
    whole = Module(network())(x)
    classes, spikes = Module(network(), output=["classes", "spikes"])(x)
    close(classes, whole[2])
    close(spikes, whole[0])
    close(Module(network(), output="membrane")(x), whole[1])
    one, other = Module(network(), output=["classes", "classes"])(x)
    close(one, other)
    for wrong in ("lunch", ["spikes", "lunch"]):
        with pytest.raises(SnncError, match=r"no output 'lunch'; it has 'spikes', 'membrane', 'classes'"):
            Module(network(), output=wrong)
    with pytest.raises(SnncError, match="needs at least one output name"):
        Module(network(), output=[])


# ---- copies ----------------------------------------------------------------------------------------------------------


def through_torch(module):
    stream = io.BytesIO()
    torch.save(module, stream)
    return torch.load(io.BytesIO(stream.getvalue()), weights_only=False)


def test_a_copy_draws_the_next_dropout_masks():
    net = snnc.Sequential(6, snnc.Dense(12, seed=1), snnc.LIF(beta=0.8), snnc.Dropout(0.5, 3), snnc.Dense(3, seed=2), snnc.LI(beta=0.9))
    module, x = Module(net, input_kind="values", **OPTIONS), torch.ones(T, B, 6)
    first = module(x)
    other = copy.deepcopy(module)
    second = module(x)
    assert not torch.equal(second, first)
    assert torch.equal(other(x), second)


@pytest.mark.representative("copy", "torch.save")
@pytest.mark.parametrize(
    "way", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m)), through_torch], ids=["copy", "pickle", "torch.save"]
)
def test_a_copy_computes_the_same_and_lives_on_by_itself(x, way):
    module = torch.nn.Sequential(Module(network(), truncate=4, output="classes", **OPTIONS), torch.nn.Linear(3, 2))
    torch.optim.SGD(module.parameters(), lr=0.1)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.01)
    module(x).sum().backward()
    other = way(module)
    assert repr(other) == repr(module)
    assert "classes" in repr(other)
    found = []
    for one in (module, other):
        one.zero_grad()
        out = one(x)
        out.square().mean().backward()
        found.append([out.detach(), *(p.grad.clone() for p in one.parameters())])
    for mine, its in zip(*found, strict=True):
        torch.testing.assert_close(its, mine, rtol=0, atol=0)
    del module
    gc.collect()
    before = other(x)
    torch.optim.SGD(other.parameters(), lr=0.1).step()
    assert not torch.equal(other(x), before)
    assert other.state_dict().keys() == way(other).state_dict().keys()


def test_weights_go_to_another_module_by_their_names(x):
    module = Module(network())
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.mul_(1.5)
    stream = io.BytesIO()
    torch.save(module.state_dict(), stream)
    other = Module(network())
    other.load_state_dict(torch.load(io.BytesIO(stream.getvalue()), weights_only=True))
    for one, another in zip(module(x), other(x), strict=True):
        torch.testing.assert_close(one, another, rtol=0, atol=0)


class Encoded(torch.utils.data.Dataset):
    """Samples that a compiled module makes where they are read."""

    def __init__(self, module, x):
        self.module, self.x = module, x

    def __len__(self):
        return self.x.shape[1]

    def __getitem__(self, index):
        with torch.no_grad():
            return self.module(self.x[:, index : index + 1])[2][:, 0]


@pytest.mark.representative("fork")
@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_workers_of_a_dataloader_run_the_module(x, context):
    module = Module(network(), threads=2)
    wanted = module(x)[2].detach()
    loader = torch.utils.data.DataLoader(Encoded(module, x), batch_size=B, num_workers=1, multiprocessing_context=context, timeout=120)
    (found,) = list(loader)
    torch.testing.assert_close(found.transpose(0, 1), wanted)
    close(module(x)[2], wanted)


LOADS = "import sys, torch; module = torch.load(sys.argv[1], weights_only=False); torch.save(module(torch.load(sys.argv[2])), sys.argv[3])"


@pytest.mark.wide
def test_another_program_loads_what_was_saved(x, tmp_path):
    module = Module(network(), output=["spikes", "classes"])
    torch.save(module, tmp_path / "module.pt")
    torch.save(x, tmp_path / "x.pt")
    names = [str(tmp_path / f"{name}.pt") for name in ("module", "x", "y")]
    subprocess.run([sys.executable, "-c", LOADS, *names], check=True, timeout=120)
    for one, other in zip(torch.load(tmp_path / "y.pt"), module(x), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


def test_copies_that_never_run_take_no_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    module = Module(network())
    copies = [copy.deepcopy(module) for _ in range(3)]
    assert len(list(tmp_path.iterdir())) == 1
    assert len(copies) == 3
    del module
    gc.collect()
    assert list(tmp_path.iterdir()) == []
