"""Packages for PopTorch on the emulator: records, gradients and training equal those of the reference backend."""

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from nets import dense  # noqa: E402  # torch is an extra
from poplar_projects import machine, several_inputs  # noqa: E402
from poptorch_packages import BATCH, CASES, STEPS, imported, package  # noqa: E402
from torch_updates import OPTIMIZERS, torch_optimizer  # noqa: E402

from snnc.backends.poptorch.build import build_operation  # noqa: E402
from snnc.backends.poptorch.emit import emit_poptorch, optimizer_settings  # noqa: E402
from snnc.backends.poptorch.engine import PopTorchEngine  # noqa: E402
from snnc.backends.poptorch.errors import UnsupportedOnPopTorchError  # noqa: E402
from snnc.backends.reference.engine import ReferenceEngine  # noqa: E402
from snnc.backends.runtime.errors import NotTrainableError  # noqa: E402
from snnc.compiler.lowering.lower import lower  # noqa: E402
from snnc.compiler.tiles import make_plan  # noqa: E402
from snnc.driver.stages import open_engine  # noqa: E402
from snnc.options.compile_options import CompileOptions  # noqa: E402
from snnc.project.compiled import Compiled  # noqa: E402

TRAINED = [name for name, case in CASES.items() if case[1] is not None]


def tensors(case, inputs):
    return [torch.from_numpy(array) for _, array in case.batch_first(inputs)]


def assert_close(found, wanted, whole, name):
    """Gradients and parameters, as the tests of the Poplar target measure them."""
    assert np.linalg.norm(found - wanted) <= 1e-5 * max(np.linalg.norm(wanted), 0.05 * whole), name


@pytest.mark.representative("hostile")
@pytest.mark.parametrize("name", CASES)
def test_records_of_the_module_equal_those_of_the_reference(name):
    case = package(name)
    with imported(case, "spiking_network") as [network]:
        import poptorch

        model = poptorch.inferenceModel(network.SpikingNetwork(), poptorch.Options())
        for seed, density in ((0, 0.4), (1, 0.03), (2, 1.0)):
            inputs, _ = case.data(seed, density)
            wanted = case.reference().forward(inputs, {})
            found = model(*tensors(case, inputs))
            found = (found,) if len(case.program.outputs) == 1 else found
            assert len(found) == len(wanted)
            for output, record in zip(case.program.outputs, found, strict=True):
                right = np.swapaxes(wanted[output.id], 0, 1)
                scale = max(1.0, float(np.abs(right).max()))
                np.testing.assert_allclose(record.numpy(), right, atol=1e-6 * scale, rtol=1e-5, err_msg=output.label)


@pytest.mark.representative("several inputs")
@pytest.mark.parametrize("name", TRAINED)
def test_gradients_of_parameters_equal_those_of_the_reference(name):
    case = package(name)
    inputs, labels = case.data(3)
    loss, wanted = case.reference().loss_and_gradients(inputs, labels)
    with imported(case, "spiking_network") as [network]:
        model = network.TrainedNetwork()
        _, found = model(*tensors(case, inputs), torch.from_numpy(labels))
        found.backward()
        assert float(found.detach()) == pytest.approx(loss, rel=1e-5)
        gradients = {n: p.grad.numpy() for n, p in model.network.named_parameters()}
    assert gradients.keys() == set(case.operation.learned)
    whole = np.sqrt(sum(float(np.square(wanted[n]).sum()) for n in gradients))
    for n, gradient in gradients.items():
        assert_close(gradient.reshape(wanted[n].shape), wanted[n], whole, n)
        assert np.abs(gradient).max() > 0, n


def test_an_input_that_asks_for_its_gradient_is_refused_in_training_alone():
    case = package("several inputs")
    inputs, _ = case.data(3)
    asked = [t.requires_grad_() for t in tensors(case, inputs)]
    with imported(case, "spiking_network") as [network]:
        module = network.SpikingNetwork()
        with pytest.raises(ValueError, match=r"requires a gradient.*detach"):
            module(*asked)
        records = module(*(t.detach() for t in asked))
        quiet = module.eval()(*asked)
    assert all(torch.equal(a, b) for a, b in zip(records, quiet, strict=True))


@pytest.mark.representative("several inputs")
@pytest.mark.parametrize("name", TRAINED)
def test_five_training_steps_equal_those_of_the_reference(name):
    case = package(name)
    reference = case.reference()
    with imported(case, "spiking_network", "train") as [network, script]:
        import poptorch

        model = network.TrainedNetwork()
        trained = poptorch.trainingModel(model, poptorch.Options(), script.optimizer_of(model.network))
        for step in range(5):
            inputs, labels = case.data(step)
            _, loss = trained(*tensors(case, inputs), torch.from_numpy(labels))
            assert float(loss) == pytest.approx(reference.train_batch(inputs, labels, case.program.optimizer.lr), rel=1e-5), step
        found = {n: p.detach().numpy() for n, p in model.network.named_parameters()}
    wanted = reference.get_parameters()
    for n, value in found.items():
        assert_close(value.reshape(wanted[n].shape), wanted[n], 0.0, n)


@pytest.mark.wide
def test_the_script_makes_the_optimizer_that_the_network_was_compiled_with():
    case = package("packed rows")
    labels = {p.name: p.label for p in case.program.parameters.values()}
    with imported(case, "spiking_network", "train") as [network, script]:
        model = network.SpikingNetwork()
        tensors_by_label = {labels[name]: tensor for name, tensor in model.named_parameters()}
        for optimizer in OPTIMIZERS.values():
            if optimizer.clip_value or optimizer.clip_norm or optimizer.l1 or getattr(optimizer, "nesterov", False):
                continue
            script.NETWORK["optimizer"] = optimizer_settings(case.program, optimizer)
            found, wanted = script.optimizer_of(model), torch_optimizer(optimizer, tensors_by_label)
            assert type(found) is type(wanted)
            for one, other in zip(found.param_groups, wanted.param_groups, strict=True):
                assert one.keys() == other.keys()
                assert all(one[key] is other[key] or one[key] == other[key] for key in one if key != "params")
                assert one["params"][0] is other["params"][0]


def test_accumulation_replicas_and_device_iterations_average_gradients():
    """One call of 2 updates, each of 3 x 2 micro-batches: the mean of the reference's gradients moves the parameters."""
    case = package("windows")
    reference, rate = case.reference(), 0.05
    batches = [case.data(10 + n) for n in range(12)]
    for update in (batches[:6], batches[6:]):
        gradients = [reference.loss_and_gradients(inputs, labels)[1] for inputs, labels in update]
        values = reference.get_parameters()
        reference.set_parameters({n: values[n] - rate * np.mean([g[n] for g in gradients], axis=0) for n in case.operation.learned})
    with imported(case, "spiking_network") as [network]:
        import poptorch

        options = poptorch.Options().deviceIterations(2).replicationFactor(2)
        options.Training.gradientAccumulation(3)
        model = network.TrainedNetwork()
        trained = poptorch.trainingModel(model, options, torch.optim.SGD(model.parameters(), lr=rate))
        columns = zip(*(tensors(case, inputs) for inputs, _ in batches), strict=True)
        record, loss = trained(*map(torch.cat, columns), torch.from_numpy(np.concatenate([labels for _, labels in batches])))
        found = {n: p.detach().numpy() for n, p in model.network.named_parameters()}
    assert (record.shape[:2], loss.shape) == ((2 * BATCH, STEPS), (2,)), "the last micro-batch of both replicas comes back"
    wanted = reference.get_parameters()
    for n in case.operation.learned:
        assert_close(found[n].reshape(wanted[n].shape), wanted[n], 0.0, n)


def test_a_pipeline_trains_like_one_ipu_and_needs_a_micro_batch_for_each_stage():
    case = package("windows")
    inputs, labels = case.data(4)
    given = [torch.cat([t] * 3) for t in (*tensors(case, inputs), torch.from_numpy(labels))]
    found = []
    with imported(case, "spiking_network") as [network]:
        import poptorch

        for pipelined in (False, True):
            options = poptorch.Options()
            options.Training.gradientAccumulation(3)
            model = network.TrainedNetwork(pipelined=pipelined)
            poptorch.trainingModel(model, options, torch.optim.SGD(model.parameters(), lr=0.1))(*given)
            found.append(copy.deepcopy(model.network.state_dict()))
        options.Training.gradientAccumulation(2)
        with pytest.raises(poptorch.Error, match="3 stages, but gradientAccumulation is 2"):
            poptorch.trainingModel(model, options, torch.optim.SGD(model.parameters(), lr=0.1))(*(t[: 2 * BATCH] for t in given))
    assert all(torch.equal(value, found[1][n]) for n, value in found[0].items())


def test_the_package_is_a_layer_of_a_larger_model():
    """A head of PyTorch behind it, each on an IPU of its own, and a model that marks no loss or has three IPUs is refused."""
    case = package("windows")
    inputs, labels = case.data(5)
    with imported(case, "spiking_network") as [network]:
        import poptorch

        class Model(torch.nn.Module):
            def __init__(self, ipu, marked=True):
                super().__init__()
                self.network = network.SpikingNetwork()
                self.head = poptorch.BeginBlock(torch.nn.Linear(4, 4), ipu_id=ipu)
                self.marked = marked

            def forward(self, spikes, labels):
                with poptorch.Block(ipu_id=0):
                    records = self.network(spikes)
                loss = torch.nn.functional.cross_entropy(self.head(records.mean(1)), labels)
                return poptorch.identity_loss(loss, "none") if self.marked else loss

        options = poptorch.Options()
        options.Training.gradientAccumulation(3)
        given = [torch.cat([t] * 3) for t in (*tensors(case, inputs), torch.from_numpy(labels))]
        torch.manual_seed(0)
        model = Model(1)
        before, head = copy.deepcopy(model.state_dict()), copy.deepcopy(model.head)
        (record,) = case.reference().forward(inputs, {}).values()
        wanted = torch.nn.functional.cross_entropy(head(torch.from_numpy(record.mean(0))), torch.from_numpy(labels))
        wanted.backward()
        found = float(poptorch.trainingModel(model, options, torch.optim.SGD(model.parameters(), lr=0.05))(*given))
        assert found == pytest.approx(float(wanted.detach()), rel=1e-5)
        assert torch.allclose(model.head.weight, head.weight - 0.05 * head.weight.grad, rtol=1e-4, atol=1e-6)
        assert {n for n, p in model.named_parameters() if not torch.equal(p, before[n])} == {n for n, _ in model.named_parameters()}
        for wrong, message in ((Model(2), "3 IPUs; the number must be a power of two"), (Model(1, marked=False), "marks no loss")):
            with pytest.raises(poptorch.Error, match=message):
                poptorch.trainingModel(wrong, options, torch.optim.SGD(wrong.parameters(), lr=0.1))(*given)


def test_the_session_of_a_package_runs_the_operation():
    case = package("several inputs")
    graph = several_inputs(np.random.default_rng(3))
    engine = open_engine(Compiled(case.program, case.plan, graph=graph, options=CompileOptions("poptorch")), case.folder)
    assert isinstance(engine, PopTorchEngine)
    reference = case.reference()
    inputs, _ = case.data(6)
    for change in (0.0, 0.25):
        values = {n: v + np.float32(change) for n, v in reference.get_parameters().items() if n in case.operation.learned}
        for each in (engine, reference):
            each.set_parameters(values)
        found, wanted = engine.forward(inputs, {}), reference.forward(inputs, {})
        for n in wanted:
            np.testing.assert_allclose(found[n], wanted[n], rtol=1e-5, atol=1e-5 * np.abs(wanted[n]).max(), err_msg=n)
    with pytest.raises(NotTrainableError, match="trained by PyTorch"):
        engine.train_batch(inputs, np.zeros(BATCH, int), 0.1)
    with pytest.raises(UnsupportedOnPopTorchError, match="same states"):
        engine.forward(inputs, {("p0", "s0"): np.zeros((BATCH, 8), np.float32)})
    engine.close()


@pytest.mark.wide
def test_parameters_lie_where_the_network_reads_them(tmp_path):
    """Spread as PopART lays what no operation creates, each of 20,000 weights of a tile would be a fragment of its own: 720 KB of code."""
    graph = dense(np.random.default_rng(0), inputs=400, hidden=200)
    program = lower(graph, steps=2)
    plan = make_plan(program, machine(4), steps=2, batch=2)
    folder = emit_poptorch(program, plan, tmp_path / "package")
    engine = PopTorchEngine(program, plan, folder, build_operation(folder))
    inputs = {"x0": np.random.default_rng(1).random((2, 2, 400)).astype(np.float32)}
    found, wanted = engine.forward(inputs, {}), ReferenceEngine(program).forward(inputs, {})
    assert all(np.allclose(found[n], wanted[n], atol=1e-5) for n in wanted)
