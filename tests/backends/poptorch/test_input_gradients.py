"""A package that returns the gradients of its inputs: layers before the network learn as in PyTorch."""

import copy
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from module_nets import B, Same, T, close, network  # noqa: E402  # torch is an extra
from poptorch_packages import imported  # noqa: E402

from snnc.driver.compiling import compile_to_folder  # noqa: E402
from snnc.driver.loading import as_graph  # noqa: E402
from snnc.options.compile_options import options  # noqa: E402


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    path = tmp_path_factory.mktemp("machine") / "one.toml"
    path.write_text('extends = "gc200"\nname = "one"\ntiles_per_chip = 10\n')
    return f"poptorch:{path}"


def compiled(target, folder, **more):
    kind = more.pop("input_kind", None)
    chosen = options(
        target, steps=T, batch=B, loss="ce_mean_membrane", optimizer="sgd:0.1", surrogate="fast_sigmoid:25", input_gradients=True, **more
    )
    return SimpleNamespace(folder=folder, plan=compile_to_folder(as_graph(network(), input_kind=kind), chosen, folder).plan)


def parameters(found, module):
    """Of the module, by the names of the model."""
    names = {name: label for label, name in found.LABELS.items()}
    return {names[name]: value for name, value in module.named_parameters()}


def test_layers_before_the_network_learn_as_in_pytorch(target, tmp_path):
    torch.manual_seed(0)
    before, x = torch.nn.Linear(6, 6), torch.randn(B, T, 6) * 2
    case = compiled(target, tmp_path / "package")
    with imported(case, "spiking_network") as [found]:
        import poptorch

        module = found.SpikingNetwork()
        named = parameters(found, module)
        assert set(named) == {"input_to_hidden.weight", "input_to_hidden.bias", "hidden_to_readout.weight", "hidden_to_readout.bias"}
        same, gradients = Same(named), []
        for run in (module, lambda x: same(x.transpose(0, 1)).transpose(0, 1)):
            before.zero_grad()
            record = run(before(x))
            (record.square().mean() + record[:, 2].sum()).backward()
            gradients.append([record.detach(), before.weight.grad.clone(), before.bias.grad.clone()])
        for one, wanted in zip(*gradients, strict=True):
            close(one, wanted)
        for name, value in named.items():
            close(value.grad, same.values[name.replace(".", "_")].grad)

        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.before, self.network = copy.deepcopy(before), module

            def forward(self, x):
                record = self.network(self.before(x))
                return record, poptorch.identity_loss(record.square().mean(), reduction="none")

        model = Model()
        trained = poptorch.trainingModel(model, poptorch.Options(), torch.optim.SGD(model.parameters(), lr=0.05))
        losses = [float(trained(x)[1].detach()) for _ in range(4)]
    wanted, optimizer = [], torch.optim.SGD([*before.parameters(), *same.parameters()], lr=0.05)
    for _ in losses:
        optimizer.zero_grad()
        loss = same(before(x).transpose(0, 1)).square().mean()
        loss.backward()
        optimizer.step()
        wanted.append(float(loss.detach()))
    np.testing.assert_allclose(losses, wanted, rtol=1e-3)
    assert wanted[-1] < wanted[0]
    close(model.before.weight.detach(), before.weight.detach())


@pytest.mark.wide
def test_spikes_that_come_in_as_events_have_gradients(target, tmp_path):
    case = compiled(target, tmp_path / "package", input_kind="spikes")
    spikes = (torch.from_numpy(np.random.default_rng(0).random((B, T, 6))) < 0.4).float()
    with imported(case, "spiking_network") as [found]:
        module = found.SpikingNetwork()
        same, gradients = Same(parameters(found, module)), []
        for run in (module, lambda x: same(x.transpose(0, 1)).transpose(0, 1)):
            x = spikes.clone().requires_grad_()
            run(x)[:, 2].sum().backward()
            gradients.append(x.grad)
    close(*gradients)
    assert gradients[0].abs().max() > 0
