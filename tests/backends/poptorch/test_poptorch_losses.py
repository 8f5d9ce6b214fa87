"""Composed losses of a package for PopTorch: value, gradients and updates equal the reference's."""

from dataclasses import asdict

import composed_losses
import numpy as np
import pytest

torch = pytest.importorskip("torch")

from poplar_projects import machine  # noqa: E402  # torch is an extra
from poptorch_packages import Package, imported  # noqa: E402

from snnc.backends.codegen.source_templates import source_of, source_templates  # noqa: E402
from snnc.backends.poptorch.composed_loss import composed_context  # noqa: E402
from snnc.backends.poptorch.emit import emit_poptorch  # noqa: E402
from snnc.checks.training_cells import loss_rows  # noqa: E402
from snnc.compiler.losses.composed import Composed  # noqa: E402
from snnc.compiler.tiles import make_plan  # noqa: E402

STEPS, BATCH = 7, 4
WHOLE = ("mse_last_membrane:targets=values,lengths,classes=2", "ce_membrane:targets=step_classes,classes=4", composed_losses.SUMS[0])
"""Losses that the whole package trains with; another one is that of test_input_gradients.py."""
TEMPLATES = source_templates()
EQUATIONS = (
    "equation[sigmoid(x) * max(x, y) + min(exp(x), 2) + ge(x, y) * tanh(x)]:statistic=steps,targets=step_values",
    "equation[sqrt(1 + x*x) * cos(x - y) + sign(x) * log(2 + sin(x)) + erf(x)]:statistic=last,targets=values",
    "equation[detach(x) * x + spike(x - y) * x + pow(x, 2)]:statistic=max",
)


def made(folder, text):
    program = composed_losses.program_of(text, steps=STEPS)
    plan = make_plan(program, machine(16), steps=STEPS, batch=BATCH)
    return Package(program, plan, emit_poptorch(program, plan, folder))


@pytest.mark.parametrize("text", dict.fromkeys([*composed_losses.ALL, *loss_rows(), *EQUATIONS]))
def test_the_emitted_module_has_the_value_and_the_gradient_of_the_loss(text):
    program = composed_losses.program_of(text, steps=STEPS)
    loss, module = program.loss, {}
    context = composed_context(loss, STEPS) if isinstance(loss, Composed) else {"steps": STEPS, **asdict(loss)}
    exec(source_of(TEMPLATES, f"poptorch/package/loss_{loss.name}.py", {"loss": context}), module)
    random = np.random.default_rng(4)
    (width,) = next(o.shape for o in program.outputs if o.id == program.loss_output)
    for values in (random.normal(size=(STEPS, BATCH, width)), random.random((STEPS, BATCH, width)) < 0.3):
        record = values.astype(np.float32)
        targets = composed_losses.targets_of(program, random, STEPS, BATCH)
        theirs = torch.tensor(np.swapaxes(record, 0, 1).copy(), requires_grad=True)
        value = module["loss_of"](theirs, torch.from_numpy(targets))
        value.backward()
        found, gradient = loss.value_and_gradient(record, targets)
        assert float(value.detach()) == pytest.approx(found, rel=1e-5, abs=1e-6)
        np.testing.assert_allclose(np.swapaxes(theirs.grad.numpy(), 0, 1), gradient, rtol=1e-4, atol=1e-6)
        scores = loss.scores(record)
        np.testing.assert_allclose(module["scores_of"](theirs.detach()).numpy(), scores, rtol=1e-5, atol=1e-6)


@pytest.mark.wide
@pytest.mark.parametrize("text", WHOLE)
def test_two_updates_are_those_of_the_reference(tmp_path, text):
    case = made(tmp_path / "package", text)
    reference = case.reference()
    with imported(case, "spiking_network", "train") as [network, script]:
        import poptorch

        model = network.TrainedNetwork()
        trained = poptorch.trainingModel(model, poptorch.Options(), script.optimizer_of(model.network))
        for inputs, targets in composed_losses.batches(case.program, 2, STEPS, BATCH):
            given = [torch.from_numpy(np.swapaxes(inputs[i.id], 0, 1).copy()) for i in case.program.inputs]
            _, loss = trained(*given, torch.from_numpy(targets))
            assert float(loss) == pytest.approx(reference.train_batch(inputs, targets, case.program.optimizer.lr), rel=1e-5, abs=1e-6)
        found = {n: p.detach().numpy() for n, p in model.network.named_parameters()}
    for name, value in reference.get_parameters().items():
        if name in found:
            np.testing.assert_allclose(found[name].reshape(value.shape), value, atol=1e-5, err_msg=name)
