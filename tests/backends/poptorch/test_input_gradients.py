"""A package that returns the gradients of its inputs: layers before the network learn as in PyTorch."""

import copy
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from composed_losses import targets_of  # noqa: E402  # torch is an extra
from module_nets import B, Same, T, close, network  # noqa: E402
from poptorch_packages import imported  # noqa: E402

from snnc.backends.reference.engine import ReferenceEngine  # noqa: E402
from snnc.driver.compiling import compile_to_folder  # noqa: E402
from snnc.driver.loading import as_graph  # noqa: E402
from snnc.options.compile_options import options  # noqa: E402


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    path = tmp_path_factory.mktemp("machine") / "one.toml"
    path.write_text('extends = "gc200"\nname = "one"\ntiles_per_chip = 10\n')
    return f"poptorch:{path}"


COMPOSED = "mse_last_membrane:targets=values,lengths"
"""The loss of the packages, although most tests use their own."""


def compiled(target, folder, input_kind=None):
    chosen = options(target, steps=T, batch=B, loss=COMPOSED, optimizer="sgd:0.1", surrogate="fast_sigmoid:25", input_gradients=True)
    made = compile_to_folder(as_graph(network(), input_kind=input_kind), chosen, folder)
    return SimpleNamespace(folder=folder, plan=made.plan, program=made.program)


@pytest.fixture(scope="module")
def case(target, tmp_path_factory):
    return compiled(target, tmp_path_factory.mktemp("values") / "package")


def parameters(found, module):
    """Of the module, by the names of the model."""
    names = {name: label for label, name in found.LABELS.items()}
    return {names[name]: value for name, value in module.named_parameters()}


def test_layers_before_the_network_learn_as_in_pytorch(case):
    torch.manual_seed(0)
    before, x = torch.nn.Linear(6, 6), torch.randn(B, T, 6) * 2
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


def test_updates_with_a_composed_loss_are_those_of_the_reference(case):
    reference, random = ReferenceEngine(case.program), np.random.default_rng(0)
    with imported(case, "spiking_network", "train") as [network, script]:
        import poptorch

        model = network.TrainedNetwork()
        learned = dict(model.network.named_parameters())
        others = {name: p.value for name, p in case.program.parameters.items() if name not in learned}
        trained = poptorch.trainingModel(model, poptorch.Options(), script.optimizer_of(model.network))
        for _ in range(2):
            x, targets = random.normal(size=(T, B, 6)).astype(np.float32), targets_of(case.program, random, T, B)
            _, loss = trained(torch.from_numpy(x.swapaxes(0, 1).copy()), torch.from_numpy(targets))
            assert float(loss) == pytest.approx(reference.train_batch({"x0": x}, targets, 0.1), rel=1e-5, abs=1e-6)
            reference.set_parameters(others)  # the gain of the input, through which its gradient is found
        found = {n: p.detach().numpy() for n, p in model.network.named_parameters()}
    assert len(found) == 4
    for name, value in found.items():
        wanted, before = reference.get_parameters()[name], case.program.parameters[name].value
        assert np.abs(wanted - before).max() > 1e-3, name
        np.testing.assert_allclose(value.reshape(wanted.shape), wanted, atol=1e-5, err_msg=name)


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
