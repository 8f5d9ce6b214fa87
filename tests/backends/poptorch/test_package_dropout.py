"""Dropout trained by a package for PopTorch: masks, losses and updates are those of the reference."""

from functools import lru_cache
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from option_cells import MACHINES  # noqa: E402  # torch is an extra
from poptorch_packages import imported, workplace  # noqa: E402
from safetensors.numpy import load_file, save_file  # noqa: E402

import snnc  # noqa: E402
from snnc.backends.training.updates.masks import masks_of  # noqa: E402
from snnc.compiler.lowering.lower import lower  # noqa: E402
from snnc.driver.compiling import compile_to_folder  # noqa: E402
from snnc.driver.loading import as_graph  # noqa: E402
from snnc.options.compile_options import options  # noqa: E402

STEPS, BATCH, INPUTS, CLASSES, RATE = 6, 4, 9, 3, 0.1
TRAINING = {"steps": STEPS, "loss": "ce_mean_membrane", "optimizer": f"sgd:{RATE}", "surrogate": "fast_sigmoid"}
CASES = {"float32": {}, "states of half numbers": {"half": "states"}}


def network():
    """Two dropout layers, with different seeds and rates."""
    layers = snnc.Dense(16), snnc.LIF(beta=0.8, threshold=0.5), snnc.Dropout(0.5), snnc.Dense(11), snnc.LIF(beta=0.7, threshold=0.5)
    return snnc.Sequential(INPUTS, *layers, snnc.Dropout(0.3, seed=7), snnc.Dense(CLASSES), snnc.LI(beta=0.9), kind="spikes", seed=1)


def data(samples=BATCH, seed=0):
    """Spikes [samples, T, n] and labels."""
    random = np.random.default_rng(seed)
    return (random.random((samples, STEPS, INPUTS)) < 0.4).astype(np.float32), np.arange(seed, seed + samples) % CLASSES


@lru_cache(maxsize=2)
def package(name):
    folder = workplace().path / f"dropout_{name.replace(' ', '_')}"
    workplace().path.joinpath("one.toml").write_text(MACHINES["one.toml"])
    chosen = options(f"poptorch:{workplace().path / 'one.toml'}", **TRAINING, **CASES[name], batch=BATCH)
    return SimpleNamespace(folder=folder, plan=compile_to_folder(as_graph(network()), chosen, folder).plan)


def reference(name="float32"):
    return snnc.compile(network(), **TRAINING, **CASES[name])


def trained_model(network_module, script, **chosen):
    """The model, and PopTorch's executor of it."""
    import poptorch

    settings = poptorch.Options().deviceIterations(chosen.get("iterations", 1)).replicationFactor(chosen.get("replicas", 1))
    settings.Training.gradientAccumulation(chosen.get("accumulation", 1))
    model = network_module.TrainedNetwork()
    return model, poptorch.trainingModel(model, settings, script.optimizer_of(model.network))


def assert_same(module, labels, session, atol=1e-5):
    for label, value in session.state_dict().items():
        found = dict(module.named_parameters()).get(labels[label])
        if found is not None:
            np.testing.assert_allclose(found.detach().numpy().reshape(value.shape), value, rtol=1e-4, atol=atol, err_msg=label)


@pytest.mark.representative("float32")
@pytest.mark.parametrize("name", CASES)
def test_losses_and_updates_are_those_of_the_reference(name):
    modules = "spiking_network", "spiking_network.masks", "train"
    with imported(package(name), *modules) as [module, masks, script], reference(name) as session:
        model, trained = trained_model(module, script)
        before = session.state_dict()
        for update in range(5):
            x, y = data(seed=update)
            drawn = masks.drawn(model.network, update, BATCH)
            _, loss = trained(torch.from_numpy(x), *drawn, torch.from_numpy(y))
            wanted = session.engine.train_batch({"x0": x.swapaxes(0, 1).copy()}, y, RATE)
            assert float(loss.mean()) == pytest.approx(wanted, rel=1e-4 if CASES[name] else 1e-5), update
        assert_same(model.network, module.LABELS, session, 1e-4 if CASES[name] else 1e-5)
        changed = [label for label, value in session.state_dict().items() if np.abs(value - before[label]).max() > 1e-3]
        assert len(changed) >= 3, "weights of all layers have changed"


def test_masks_are_those_of_all_targets_bit_for_bit():
    program = lower(network().graph())
    values = {name: p.value for name, p in program.parameters.items()}
    with imported(package("float32"), "spiking_network", "spiking_network.masks") as [module, masks]:
        net = module.SpikingNetwork()
        for update, first, samples in ((0, 0, 4), (3, 5, 200), (70_000, 12, 3)):
            wanted = masks_of(program).of(values.__getitem__, update, first, samples)
            found = masks.drawn(net, update, samples, first=first)
            assert len(found) == len(wanted) == 2
            for one, right in zip(found, wanted.values(), strict=True):
                np.testing.assert_array_equal(one.numpy(), right)
        two = masks.drawn(net, 4, 3, iterations=2)
        for one, parts in zip(two, zip(masks.drawn(net, 4, 3), masks.drawn(net, 5, 3), strict=True), strict=True):
            assert torch.equal(one, torch.cat(parts)), "device iterations are consecutive updates"


@pytest.mark.representative("{'replicas': 2}", "{'iterations': 2, 'accumulation': 2}")
@pytest.mark.parametrize("chosen", [{"accumulation": 3}, {"replicas": 2}, {"iterations": 2, "accumulation": 2}], ids=str)
def test_samples_of_an_update_have_the_masks_of_one_large_batch(chosen):
    iterations, samples = chosen.get("iterations", 1), BATCH * chosen.get("accumulation", 1) * chosen.get("replicas", 1)
    modules = "spiking_network", "spiking_network.masks", "train"
    with imported(package("float32"), *modules) as [module, masks, script], reference() as session:
        model, trained = trained_model(module, script, **chosen)
        for call in range(2):
            x, y = data(iterations * samples, call)
            drawn = masks.drawn(model.network, call * iterations, samples, iterations)
            trained(torch.from_numpy(x), *drawn, torch.from_numpy(y))
            for part in (slice(n * samples, (n + 1) * samples) for n in range(iterations)):
                session.engine.train_batch({"x0": x[part].swapaxes(0, 1).copy()}, y[part], RATE)
        assert_same(model.network, module.LABELS, session)


def test_the_script_draws_masks_for_each_update(tmp_path):
    """Two epochs of three updates of two micro-batches, the samples in the order in which the loader of the script gives them."""
    x, y = data(6 * BATCH)
    save_file({"x0": x, "labels": y}, tmp_path / "data.safetensors")
    arguments = ["--data", str(tmp_path / "data.safetensors"), "--accumulation", "2", "--epochs", "2", "--save", str(tmp_path / "w")]
    modules = "spiking_network", "train", "spiking_network.options"
    with imported(package("float32"), *modules) as [module, script, chosen], reference() as session:
        import poptorch

        seen = []

        class Loader(poptorch.DataLoader):
            def __iter__(self):
                for samples in super().__iter__():
                    seen.append(samples)
                    yield samples

        poptorch.DataLoader = Loader
        args = chosen.parser("").parse_args(arguments)
        script.train(args, chosen.chosen_options(args, poptorch.Options()))
        assert len(seen) == 6
        for images, labels in seen:
            session.engine.train_batch({"x0": images.numpy().swapaxes(0, 1).copy()}, labels.numpy(), RATE)
        found = load_file(tmp_path / "w")
        for label, value in session.state_dict().items():
            if module.LABELS[label] in found:
                np.testing.assert_allclose(found[module.LABELS[label]].reshape(value.shape), value, rtol=1e-4, atol=1e-5, err_msg=label)


def test_processes_of_popdist_draw_the_masks_of_their_samples():
    with imported(package("float32"), "spiking_network", "spiking_network.masks") as [module, masks]:
        net = module.SpikingNetwork()
        whole = masks.drawn(net, 2, 2 * BATCH)
        for instance in range(2):
            own = masks.drawn(net, 2, BATCH, first=instance * BATCH)
            for one, all_samples in zip(own, whole, strict=True):
                assert torch.equal(one, all_samples[instance * BATCH : (instance + 1) * BATCH])
    script = (package("float32").folder / "train_popdist.py").read_text()
    assert "first = popdist.getInstanceIndex() * popdist.getNumLocalReplicas()" in script
    assert "first_replica=first" in script


def test_inference_drops_nothing_and_takes_no_masks():
    x, _ = data()
    with imported(package("float32"), "spiking_network", "spiking_network.masks") as [module, masks], reference() as session:
        wanted = session.run(x.swapaxes(0, 1))["output"].swapaxes(0, 1)
        net = module.SpikingNetwork()
        drawn = masks.drawn(net, 0, BATCH)
        dropped = net(torch.from_numpy(x), *drawn).detach().numpy()
        with pytest.raises(ValueError, match=r"in train\(\) mode, the network takes 1 inputs and 2 masks, not 1 tensors"):
            net(torch.from_numpy(x))
        with pytest.raises(ValueError, match=r"the mask of dropout2 has shape \[4, 16\], not \[4, 11\]"):
            net(torch.from_numpy(x), drawn[0], drawn[0])
        net.eval()
        np.testing.assert_allclose(net(torch.from_numpy(x)).detach().numpy(), wanted, rtol=1e-4, atol=1e-5)
        with pytest.raises(ValueError, match=r"in eval\(\) mode, the network takes 1 inputs, not 3 tensors"):
            net(torch.from_numpy(x), *drawn)
    assert np.abs(dropped - wanted).max() > 1e-2


def test_a_session_of_the_package_drops_nothing():
    x, _ = data()
    given = TRAINING | {"batch": BATCH}
    with snnc.compile(network(), f"poptorch:{workplace().path / 'one.toml'}", **given) as session, reference() as wanted:
        steps_first = x.swapaxes(0, 1)
        np.testing.assert_allclose(session.run(steps_first)["output"], wanted.run(steps_first)["output"], atol=1e-5)
