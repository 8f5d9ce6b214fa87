"""A custom operation that is assigned to one IPU and uses the tiles of several."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from poplar_projects import machine  # noqa: E402  # torch is an extra
from poptorch_packages import BATCH, STEPS, imported, package  # noqa: E402
from windowed_nets import deep  # noqa: E402

from snnc.backends.poptorch.emit import render  # noqa: E402
from snnc.backends.poptorch.errors import UnsupportedOnPopTorchError  # noqa: E402
from snnc.backends.poptorch.operation import PopartOperation  # noqa: E402
from snnc.compiler.losses import parse_loss  # noqa: E402
from snnc.compiler.losses.optimizers import SGD  # noqa: E402
from snnc.compiler.lowering.lower import lower  # noqa: E402
from snnc.compiler.tiles import make_plan  # noqa: E402

CASE = "two IPUs"


def tensors(case, inputs):
    return [torch.from_numpy(array) for _, array in case.batch_first(inputs)]


def test_records_and_gradients_equal_those_of_the_reference():
    case = package(CASE)
    tiles = case.plan.target.tiles_per_chip
    used = {block.tile // tiles for p in case.plan.populations for block in p.blocks}
    assert used == {0, 1}
    inputs, labels = case.data(3)
    reference = case.reference()
    loss, wanted = reference.loss_and_gradients(inputs, labels)
    with imported(case, "spiking_network") as [network]:
        model = network.TrainedNetwork()
        record, found = model(*tensors(case, inputs), torch.from_numpy(labels))
        found.backward()
        gradients = {n: p.grad.numpy() for n, p in model.network.named_parameters()}
    assert float(found.detach()) == pytest.approx(loss, rel=1e-5)
    (right,) = reference.forward(inputs, {}).values()
    np.testing.assert_allclose(record.detach().numpy(), np.swapaxes(right, 0, 1), rtol=1e-5, atol=1e-5)
    assert gradients.keys() == set(case.operation.learned)
    for n, gradient in gradients.items():
        assert np.linalg.norm(gradient.reshape(wanted[n].shape) - wanted[n]) <= 1e-5 * np.linalg.norm(wanted[n]), n


def test_the_script_trains_in_sharded_execution_and_refuses_a_pipeline():
    case = package(CASE)
    reference = case.reference()
    with imported(case, "spiking_network", "train", "spiking_network.options") as [network, script, chosen]:
        import poptorch

        options = chosen.chosen_options(chosen.parser("").parse_args([]), poptorch.Options())
        assert isinstance(options.strategy, poptorch.ShardedExecution)
        assert not options.strategy.pipelined
        with pytest.raises(SystemExit, match="2 IPUs at once"):
            chosen.chosen_options(chosen.parser("").parse_args(["--pipelined", "--accumulation", "4"]), poptorch.Options())
        model = network.TrainedNetwork()
        trained = poptorch.trainingModel(model, options, script.optimizer_of(model.network))
        for step in range(3):
            inputs, labels = case.data(step)
            _, loss = trained(*tensors(case, inputs), torch.from_numpy(labels))
            assert float(loss) == pytest.approx(reference.train_batch(inputs, labels, case.program.optimizer.lr), rel=1e-5), step
        alone = poptorch.inferenceModel(network.SpikingNetwork(), options)
        with pytest.raises(poptorch.Error, match="its custom operation needs 2"):
            alone(*tensors(case, inputs))


@pytest.mark.parametrize(("chips", "trains", "why"), [(3, True, "1, 2, 4"), (2, False, "inference")])
def test_what_poptorch_cannot_place_is_refused(chips, trains, why):
    loss = {"loss": parse_loss("ce_mean_membrane"), "loss_output": "y", "optimizer": SGD(0.1)} if trains else {}
    program = lower(deep(np.random.default_rng(3), widths=(20,)), steps=STEPS, **loss)
    plan = make_plan(program, machine(40, chips), steps=STEPS, batch=BATCH, chips=chips, quick=True)
    with pytest.raises(UnsupportedOnPopTorchError, match=why):
        render(PopartOperation(program, plan))
