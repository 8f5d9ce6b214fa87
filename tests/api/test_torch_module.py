"""A compiled network under autograd: gradients, optimisers and state dictionaries equal those of the network in PyTorch."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch
from module_nets import B, Same, T, close, network

import snnc
from snnc.backends.cuda.errors import CHECK_ON_HOST
from snnc.errors import SnncError
from snnc.torch import Module


@pytest.fixture(scope="module", params=["cpu", "cuda"])
def layer(request):
    """On the CPU, and as a GPU's program in a check on the CPU."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CHECK_ON_HOST, "1")
        yield Module(network(), target=request.param, surrogate="fast_sigmoid:25", input_gradients=True)


@pytest.fixture
def x():
    return torch.from_numpy(np.random.default_rng(0).normal(size=(T, B, 6)).astype(np.float32)) * 2


def test_outputs_and_gradients_equal_those_of_pytorch_between_other_layers(layer, x):
    torch.manual_seed(0)
    same, before, behind = Same(dict(layer.named_parameters())), torch.nn.Linear(6, 6), torch.nn.Linear(3, 2)
    found = []
    for middle in (layer, same):
        for module in (before, behind, middle):
            module.zero_grad()
        out = behind(middle(before(x)))
        (out.square().mean() + out[2].sum()).backward()
        found.append([out.detach(), *(p.grad.clone() for module in (before, behind) for p in module.parameters())])
    for one, other in zip(*found, strict=True):
        close(one, other)
    for name, parameter in layer.named_parameters():
        close(parameter.grad, same.values[name.replace(".", "_")].grad)


def test_a_pass_that_was_not_the_last_one_goes_back_all_the_same(layer, x):
    layer.zero_grad()
    first, second = layer(x).square().mean(), layer(x * 0.5).square().mean()
    first.backward()
    second.backward()
    together = [p.grad.clone() for p in layer.parameters()]
    layer.zero_grad()
    for scale in (1.0, 0.5):
        layer(x * scale).square().mean().backward()
    for parameter, wanted in zip(layer.parameters(), together, strict=True):
        torch.testing.assert_close(parameter.grad, wanted)


def test_truncated_gradients_are_those_of_states_that_are_detached(x):
    layer = Module(network(), surrogate="fast_sigmoid:25", truncate=3)
    same = Same(dict(layer.named_parameters()), truncate=3)
    for module in (layer, same):
        out = module(x)
        (out.square().mean() + out[2].sum()).backward()
    for name, parameter in layer.named_parameters():
        close(parameter.grad, same.values[name.replace(".", "_")].grad)


def test_a_module_in_bfloat16_goes_back_with_rounded_histories(x):
    gradients = []
    for precision in ("float32", "bfloat16"):
        layer = Module(network(), surrogate="fast_sigmoid:25", precision=precision)
        with torch.no_grad():
            for parameter in layer.parameters():
                parameter.copy_(parameter.bfloat16())
        layer(x).square().mean().backward()
        gradients.append(torch.cat([p.grad.flatten() for p in layer.parameters()]))
    error = torch.linalg.norm(gradients[1] - gradients[0]) / torch.linalg.norm(gradients[0])
    assert 0 < error < 2**-7


def test_optimisers_hooks_and_state_dictionaries_work(layer, x):
    start = {name: value.clone() for name, value in layer.state_dict().items()}
    assert set(start) >= {"input_to_hidden.weight", "input_to_hidden.bias", "hidden_to_readout.weight", "hidden_to_readout.bias"}
    seen = []
    handle = layer.register_forward_hook(lambda module, given, result: seen.append(tuple(result.shape)))
    same = Same(dict(layer.named_parameters()))
    for module in (layer, same):
        optimizer = torch.optim.Adam(module.parameters(), lr=1e-3)
        for _ in range(3):
            optimizer.zero_grad()
            module(x).mean(0).square().sum().backward()
            optimizer.step()
    handle.remove()
    assert seen == [(T, B, 3)] * 3
    for name, parameter in layer.named_parameters():
        assert not torch.equal(parameter, start[name])
        torch.testing.assert_close(parameter, same.values[name.replace(".", "_")], rtol=1e-3, atol=1e-4)
    layer.load_state_dict(start)
    with torch.no_grad():
        close(layer(x), Same(start)(x))


def test_events_are_taken_and_what_does_not_fit_is_refused(layer, x):
    spikes = (x > 0).float()
    torch.testing.assert_close(layer(snnc.Events.from_dense(spikes)), layer(spikes))
    with pytest.raises(SnncError, match=r"\[T, B, 6\]"):
        layer(torch.ones(T, B, 5))
    with pytest.raises(SnncError, match="'other'"):
        layer({"other": x})
    with pytest.raises(SnncError, match="cpu"):
        layer(torch.empty(T, B, 6, device="meta"))


DISTRIBUTED = """
import os, sys
import numpy as np, torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
sys.path[:0] = sys.argv[2].split(os.pathsep)
import host_flags
from test_torch_module import B, T, network
from snnc.torch import Module
rank = int(sys.argv[1])
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method="file://" + sys.argv[3], rank=rank, world_size=2)
x = torch.from_numpy(np.random.default_rng(0).normal(size=(T, 4, 6)).astype(np.float32)) * 2
for target in ("cpu", "cuda"):
    layer = DistributedDataParallel(Module(network(), target=target, surrogate="fast_sigmoid:25"))
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        layer(x[:, 2 * rank : 2 * rank + 2]).square().mean().backward()
        optimizer.step()
    torch.save(layer.module.state_dict(), sys.argv[4] + target + str(rank))
dist.destroy_process_group()
"""


@pytest.mark.wide
def test_two_processes_train_as_one_does(tmp_path):
    layer = Module(network(), surrogate="fast_sigmoid:25", threads=1)
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(T, 4, 6)).astype(np.float32)) * 2
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    script = tmp_path / "distributed.py"
    script.write_text(DISTRIBUTED)
    arguments = [os.pathsep.join([os.path.dirname(__file__), *sys.path]), str(tmp_path / "store"), str(tmp_path / "found")]
    environment = os.environ | {CHECK_ON_HOST: "1", "SNNC_THREADS": "1"}
    started = [
        subprocess.Popen([sys.executable, str(script), str(rank), *arguments], stderr=subprocess.PIPE, text=True, env=environment)
        for rank in range(2)
    ]
    for _ in range(2):
        optimizer.zero_grad()
        layer(x).square().mean().backward()
        optimizer.step()
    for process in started:
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors[-3000:]
    for target in ("cpu", "cuda"):
        one, other = (torch.load(tmp_path / f"found{target}{rank}", weights_only=True) for rank in range(2))
        for name, value in layer.state_dict().items():
            torch.testing.assert_close(one[name], other[name], rtol=0, atol=0)
            close(one[name], value)


def test_both_passes_run_in_torchs_current_stream_without_waiting(x, monkeypatch, tmp_path):
    """Streams of a check are numbers, which the program writes down."""
    monkeypatch.setenv(CHECK_ON_HOST, "1")
    monkeypatch.setenv("SNNC_HOST_STREAMS", str(tmp_path / "streams.txt"))
    monkeypatch.setattr(Module, "_stream", lambda self: 7)
    layer = Module(network(), target="cuda", surrogate="fast_sigmoid:25")
    layer(x).square().mean().backward()
    calls = [line.split() for line in (tmp_path / "streams.txt").read_text().splitlines()]
    named = calls.index(["hold", "7"]) + 1
    assert len(calls) > named + 20
    assert {tuple(call) for call in calls[named:]} <= {("launch", "7"), ("copy", "7"), ("clear", "7")}


def test_a_module_has_its_gradient_window_as_a_value(x):
    def gradients(module):
        module.zero_grad()
        module(x).square().sum().backward()
        return {name: p.grad.clone() for name, p in module.named_parameters()}

    wide = Module(network(), gradient_window=(-3.0, 2.0))
    narrow = Module(network(), gradient_window=(-0.4, 0.3))
    assert not any("window" in name for name in wide.state_dict())
    before = gradients(wide)
    wide.gradient_window = -0.4, 0.3
    wide = pickle.loads(pickle.dumps(wide))
    assert wide.gradient_window == (-0.4, 0.3)
    wanted = gradients(narrow)
    for name, found in gradients(wide).items():
        assert torch.equal(found, wanted[name])
    assert not torch.equal(before["input_to_hidden.weight"], wanted["input_to_hidden.weight"])
    with pytest.raises(SnncError, match="SNNC-E596"):
        wide.gradient_window = -4.0
