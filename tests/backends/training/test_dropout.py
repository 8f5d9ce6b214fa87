"""Dropout: one mask per sequence, the same on every target, and gradients compared with PyTorch's for that mask."""

from types import SimpleNamespace

import numpy as np
import pytest

import snnc
from snnc.backends.cuda.errors import CHECK_ON_HOST
from snnc.backends.training.updates.masks import masks_of, uniform
from snnc.backends.training.updates.updates import Updates
from snnc.compiler.errors import NeuronDefinitionError

STEPS, BATCH, INPUTS, HIDDEN, CLASSES = 6, 4, 5, 16, 3


def network(rate=0.5, seed=0):
    layers = snnc.Dense(HIDDEN), snnc.LIF(beta=0.8), snnc.Dropout(rate, seed), snnc.Dense(CLASSES), snnc.LI(beta=0.9)
    return snnc.Sequential(INPUTS, *layers, kind="values", seed=1)


def data(samples=BATCH, seed=0):
    generator = np.random.default_rng(seed)
    x = generator.normal(0.5, 1.0, (samples, STEPS, INPUTS)).astype(np.float32)
    return x, np.arange(samples) % CLASSES


def compiled(target="reference", rate=0.5, seed=0, **options):
    options |= {"loss": "ce_mean_membrane", "optimizer": "sgd:0.1", "surrogate": "fast_sigmoid"}
    return snnc.compile(network(rate, seed), target, steps=STEPS, batch=BATCH, **options)


def mask_of(session, update, first=0, batch=BATCH):
    values = session.engine.get_parameters()
    (found,) = masks_of(session.program).of(values.__getitem__, update, first, batch).values()
    return found


def test_masks_have_the_rate_and_keep_the_mean():
    with compiled(rate=0.3) as session:
        mask = mask_of(session, 0, batch=4000)
    assert set(np.unique(mask)) == {0, np.float32(1 / 0.7)}
    assert abs((mask == 0).mean() - 0.3) < 0.005
    assert np.abs((mask == 0).mean(axis=0) - 0.3).max() < 0.03


def test_numbers_depend_on_every_part_of_the_counter_and_on_no_division_of_the_rows():
    whole = uniform((1, 2, 3), 0, 64, 50)
    assert 0 <= whole.min() < 0.01
    assert 0.99 < whole.max() < 1
    np.testing.assert_array_equal(whole[40:], uniform((1, 2, 3), 40, 24, 50))
    for other in ((0, 2, 3), (1, 1, 3), (1, 2, 4)):
        assert abs(np.corrcoef(whole.ravel(), uniform(other, 0, 64, 50).ravel())[0, 1]) < 0.06
    assert np.abs(np.corrcoef(whole) - np.eye(64)).max() < 0.7


def test_a_run_drops_nothing():
    x, y = data()
    with compiled(rate=0.5) as session, compiled(rate=0.0) as whole:
        np.testing.assert_array_equal(session.run(x.swapaxes(0, 1))["output"], whole.run(x.swapaxes(0, 1))["output"])
        session.fit(x, y, batch=BATCH)
        whole.load_state_dict({k: v for k, v in session.state_dict().items() if k != "dropout.rate"}, strict=False)
        np.testing.assert_array_equal(session.run(x.swapaxes(0, 1))["output"], whole.run(x.swapaxes(0, 1))["output"])


def torch_updates(session, x, y, updates):
    """Weights after some updates by PyTorch's autograd, with the masks that snnc draws."""
    torch = pytest.importorskip("torch")

    class FastSigmoid(torch.autograd.Function):
        @staticmethod
        def forward(ctx, v):
            ctx.save_for_backward(v)
            return (v > 0).float()

        @staticmethod
        def backward(ctx, g):
            (v,) = ctx.saved_tensors
            return g / (25 * v.abs() + 1) ** 2

    labels = ("input_to_lif.weight", "input_to_lif.bias", "dropout_to_li.weight", "dropout_to_li.bias")
    w1, b1, w2, b2 = (torch.tensor(session.state_dict()[n], requires_grad=True) for n in labels)
    for update in range(updates):
        mask = torch.tensor(mask_of(session, update))
        v, u, total = torch.zeros(BATCH, HIDDEN), torch.zeros(BATCH, CLASSES), 0
        for t in range(STEPS):
            reset = (v > 1).float()
            v = 0.8 * v + torch.tensor(x[:, t]) @ w1.T + b1 - reset
            u = 0.9 * u + (mask * FastSigmoid.apply(v - 1)) @ w2.T + b2
            total = total + u
        torch.nn.functional.cross_entropy(total / STEPS, torch.tensor(y)).backward()
        with torch.no_grad():
            for p in (w1, b1, w2, b2):
                p.sub_(0.1 * p.grad)
                p.grad = None
    return {n: p.detach().numpy() for n, p in zip(labels, (w1, b1, w2, b2), strict=True)}


@pytest.mark.representative("reference", "cpu")
@pytest.mark.parametrize("target", ["reference", "cpu", "gc200"])
def test_updates_are_those_of_autograd_with_the_same_mask(target):
    x, y = data()
    with compiled(target) as session:
        wanted = torch_updates(session, x, y, 5)
        before = session.state_dict()
        session.fit(x, y, epochs=5, batch=BATCH, shuffle=False)
        found = session.state_dict()
    for name, value in wanted.items():
        assert np.abs(value - before[name]).max() > 1e-3
        np.testing.assert_allclose(found[name], value, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("target", ["reference", "cpu"])
def test_samples_of_an_update_have_the_same_masks_in_parts(target):
    x, y = data()
    with compiled(target) as whole, compiled(target) as parts:
        whole.fit(x, y, epochs=2, batch=BATCH)
        parts.fit(x, y, epochs=2, batch=BATCH, accumulate=3)
        for name, value in whole.state_dict().items():
            np.testing.assert_allclose(parts.state_dict()[name], value, atol=1e-6, err_msg=name)


@pytest.mark.wide
def test_batches_of_a_machine_that_make_one_update_have_the_masks_of_one_batch():
    x, y = data(2 * BATCH)
    options = {"steps": STEPS, "loss": "ce_mean_membrane", "optimizer": "sgd:0.1,accumulate", "surrogate": "fast_sigmoid"}
    whole = snnc.compile(network(), batch=2 * BATCH, **options | {"optimizer": "sgd:0.1"})
    with whole, snnc.compile(network(), "gc200", batch=BATCH, **options) as parts:
        whole.fit(x, y, epochs=2, batch=2 * BATCH, shuffle=False)
        parts.fit(x, y, epochs=2, accumulate=2, shuffle=False)
        for name, value in whole.state_dict().items():
            np.testing.assert_allclose(parts.state_dict()[name], value, atol=1e-5, err_msg=name)


def test_a_resumed_training_draws_the_masks_that_follow(tmp_path):
    x, y = data(3 * BATCH)
    with compiled() as whole, compiled() as first, compiled() as second:
        whole.fit(x, y, epochs=2, batch=BATCH)
        first.fit(x, y, epochs=1, batch=BATCH)
        first.save(tmp_path / "half.safetensors", optimizer=True)
        second.load(tmp_path / "half.safetensors", optimizer=True)
        second.fit(x, y, epochs=1, first_epoch=1, batch=BATCH)
        for name, value in whole.state_dict().items():
            np.testing.assert_array_equal(second.state_dict()[name], value)


@pytest.mark.parametrize(("rate", "seed"), [(1.0, 0), (-0.1, 0), (0.5, -1), (0.5, 0.5), (0.5, 1 << 24)])
def test_rates_and_seeds_out_of_range_are_refused(rate, seed):
    with pytest.raises(NeuronDefinitionError, match=r"the (rate|seed) of a dropout is"):
        snnc.Dropout(rate, seed)


def test_a_gpu_s_program_draws_the_same_masks(monkeypatch):
    monkeypatch.setenv(CHECK_ON_HOST, "1")
    x, y = data()
    with compiled("cuda") as gpu, compiled() as wanted:
        for session in (gpu, wanted):
            session.fit(x, y, epochs=2, batch=BATCH)
        for name, value in wanted.state_dict().items():
            np.testing.assert_allclose(gpu.state_dict()[name], value, atol=1e-5, err_msg=name)


@pytest.mark.representative("cpu")
@pytest.mark.parametrize("target", ["cpu", "gc200"])
def test_a_module_of_pytorch_drops_in_the_mode_train_only(target):
    torch = pytest.importorskip("torch")
    from snnc.torch import Module

    sizes = {} if target == "cpu" else {"steps": STEPS, "batch": BATCH}
    module = Module(network(0.5), target=target, surrogate="fast_sigmoid", **sizes)
    x = torch.tensor(data()[0].swapaxes(0, 1).copy())
    trained = [module(x) for _ in range(2)]
    module.eval()
    still = [module(x) for _ in range(2)]
    assert torch.equal(*still)
    assert not torch.equal(*trained)
    assert not torch.equal(trained[0], still[0])
    weight = module.get_submodule("dropout_to_li").weight
    (first,) = torch.autograd.grad(trained[0].sum(), weight)  # runs again, with the masks of that run
    (again,) = torch.autograd.grad(trained[1].sum(), weight)
    assert not torch.equal(first, again)


def test_processes_that_share_a_batch_have_the_masks_of_their_samples():
    """Two ranks of which each sums its share of the gradients; the second has two of five samples."""
    x, y = data(5)
    with compiled("cpu") as session:
        shares = [[({"x0": x[part].swapaxes(0, 1).copy()}, y[part])] for part in (slice(0, 3), slice(3, 5), slice(0, 5))]
        losses, gradients = [], np.zeros((3, session.engine.gradient_elements), np.float32)
        for rank, (parts, flat) in enumerate(zip(shares, gradients, strict=True)):
            share = SimpleNamespace(
                gather_parts=session.engine.gather_parts,
                share=lambda samples, r=rank: np.array_split(samples, 2)[r] if r < 2 else samples,
            )

            def keep(loss, some, rate, stop, flat=flat):
                session.engine.gradients_to(flat.ctypes.data)
                losses.append(loss)
                return loss, stop

            share.update = keep
            Updates(session.engine, ranks=share).make(SimpleNamespace(count=5, samples_at=lambda mine, p=parts[0]: p), lambda: None, 0.0)
    assert losses[0] + losses[1] == pytest.approx(losses[2], rel=1e-5)
    np.testing.assert_allclose(gradients[0] + gradients[1], gradients[2], atol=1e-6, rtol=1e-4)
    assert np.abs(gradients).max() > 0.01
