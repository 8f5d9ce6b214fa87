"""Batch normalisation trained by a package for PopTorch: values, gradients, updates and running statistics are those of the reference."""

from functools import lru_cache

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from option_cells import MACHINES  # noqa: E402  # torch is an extra
from poplar_projects import machine  # noqa: E402
from poptorch_packages import Package, imported, workplace  # noqa: E402
from safetensors.numpy import load_file, save_file  # noqa: E402

import snnc  # noqa: E402
from snnc.backends.poptorch.emit import emit_poptorch  # noqa: E402
from snnc.backends.reference.engine import ReferenceEngine  # noqa: E402
from snnc.backends.runtime.errors import NormalisationError  # noqa: E402
from snnc.backends.training.updates.normalising import NormalisingEngine  # noqa: E402
from snnc.compiler.losses import parse_loss  # noqa: E402
from snnc.compiler.losses.optimizers import SGD  # noqa: E402
from snnc.compiler.lowering.lower import lower  # noqa: E402
from snnc.compiler.tiles import make_plan  # noqa: E402
from snnc.driver.compiling import compile_to_folder  # noqa: E402
from snnc.options.compile_options import options  # noqa: E402

NORM = snnc.BatchNorm(gain=0.9, momentum=0.3, eps=1e-3)
STEPS, BATCH, RATE = 5, 4, 0.2


def dense():
    """A layer that starts with declared states."""
    net = snnc.Network("dense", seed=1)
    spikes, y = net.input(24), net.population(3, snnc.LI(beta=0.9), name="li")
    hidden = net.population(16, snnc.LIF(beta=0.8, threshold=0.5), initial={"v": np.linspace(-0.4, 0.8, 16)})
    net.connect(spikes, hidden, [snnc.Dense(16), NORM])
    net.connect(hidden, y)
    return net.graph()


def convolutional():
    """Two normalisations after one another, the first with channels."""
    layers = (snnc.Conv(3, 3), NORM, snnc.LIF(beta=0.8), snnc.MaxPool(2), snnc.Dense(7), NORM, snnc.LIF(beta=0.7, threshold=0.6))
    return snnc.Sequential((2, 6, 6), *layers, snnc.Dense(3), snnc.LI(beta=0.9), seed=2).graph()


LIMITS = {"steps": STEPS, "mode": "drop", "capacity": "10 %"}
"""Each source of the case "dense" sends few spikes."""
FORWARD = {"forward: neurons", "recompute: neurons"}
CASES = {
    "dense": (dense, machine(4), {}),
    "convolutions": (convolutional, machine(7), {}),
    "segments": (convolutional, machine(7), {"recompute": 4}),
    "two IPUs": (dense, machine(3, 2), {"chips": 2}),
}


@lru_cache(maxsize=4)
def package(name):
    make, target, mapping = CASES[name]
    folder = workplace().path / f"normalised_{name.replace(' ', '_')}"
    if name == "dense":
        workplace().path.joinpath("one.toml").write_text(MACHINES["one.toml"])
        training = {"batch": BATCH, "loss": "ce_mean_membrane", "optimizer": f"sgd:{RATE},0.5"}
        made = compile_to_folder(make(), options(f"poptorch:{workplace().path / 'one.toml'}", **LIMITS, **training), folder)
        return Package(made.program, made.plan, folder)
    program = lower(make(), loss=parse_loss("ce_mean_membrane"), loss_output="li", optimizer=SGD(RATE, 0.5), steps=STEPS)
    plan = make_plan(program, target, steps=STEPS, batch=BATCH, effort=0, operation=True, **mapping)
    assert (plan.segment > 0) == (name == "segments")
    return Package(program, plan, emit_poptorch(program, plan, folder))


def data(case, seed, samples=BATCH):
    random = np.random.default_rng(seed)
    (x,) = case.program.inputs
    return (random.random((STEPS, samples, *x.shape)) < 0.4).astype(np.float32), np.arange(seed, seed + samples) % 3


def reference(case):
    return NormalisingEngine(ReferenceEngine(case.program), case.program)


def first(x):
    return torch.from_numpy(np.swapaxes(x, 0, 1).copy())


def trained_model(case, network, script, **chosen):
    """The model, and PopTorch's executor of it."""
    import poptorch

    options = poptorch.Options().broadcastBuffers(False)
    options.deviceIterations(chosen.get("iterations", 1)).replicationFactor(chosen.get("replicas", 1))
    options.Training.gradientAccumulation(chosen.get("accumulation", 1))
    if case.plan.target.chips > 1:
        options.setExecutionStrategy(poptorch.ShardedExecution())
    model = network.TrainedNetwork()
    return model, poptorch.trainingModel(model, options, script.optimizer_of(model.network))


def assert_same(case, module, wanted):
    """Parameters and buffers of the module; what limits spikes is a value of a run."""
    wanted = {name: value for name, value in wanted.items() if not name.endswith(("_capacity", "_choice"))}
    names = dict(module.named_parameters()) | {name: b for name, b in module.named_buffers() if name in wanted}
    assert names.keys() >= wanted.keys()
    for name, value in wanted.items():
        found = names[name].detach().numpy().reshape(value.shape)
        np.testing.assert_allclose(found, value, rtol=1e-4, atol=1e-5, err_msg=case.program.parameters[name].label)


@pytest.mark.representative("dense")
@pytest.mark.parametrize("name", CASES)
def test_updates_running_statistics_and_inference_are_those_of_the_reference(name):
    case, updates = package(name), 20 if name in ("dense", "convolutions") else 4
    engine = reference(case)
    before = engine.get_parameters()
    with imported(case, "spiking_network", "train") as [network, script]:
        import poptorch

        model, trained = trained_model(case, network, script)
        for update in range(updates):
            x, y = data(case, update)
            _, loss = trained(first(x), torch.from_numpy(y))
            assert float(loss) == pytest.approx(engine.train_batch({"x0": x}, y, RATE), rel=1e-4), update
        assert_same(case, model.network, engine.get_parameters())
        running = [p.name for p in case.program.parameters.values() if p.label.endswith(("statistics.mean", "statistics.var"))]
        assert all((engine.get_parameters()[name] != before[name]).any() for name in running)
        x, _ = data(case, 99)
        (wanted,) = engine.forward({"x0": x}, {}).values()
        infers = model.network.eval() if case.plan.target.chips > 1 else poptorch.inferenceModel(model.network.eval(), poptorch.Options())
        np.testing.assert_allclose(infers(first(x)).detach().numpy(), np.swapaxes(wanted, 0, 1), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["dense", "segments"])
def test_a_plan_counts_the_passes_of_the_operation_and_of_its_gradient(name):
    """Runs of the supersteps of neurons and of moments in one call, those of the emulator."""
    case = package(name)
    with imported(case, "spiking_network", "train") as [network, script]:
        import poptorch

        x, y = data(case, 0)
        trained_model(case, network, script)[1](first(x), torch.from_numpy(y))
        emulator = poptorch.custom_op.__self__
        steps = [s for op in (*emulator.operations.values(), *emulator.gradients.values()) for s in op.profile()["steps"]]
    for phases, compute_set in ((FORWARD, "F2 neurons"), ({"forward: moments"}, "N1 moments"), ({"backward: neurons"}, "B2 neurons")):
        counted = sum(step["executions"] for step in steps if step["name"].rsplit("/", 1)[-1] == compute_set)
        assert counted == sum(phase.runs for phase in case.plan.phases if phase.name in phases) > 0, compute_set


@pytest.mark.representative("segments")
@pytest.mark.parametrize("name", ["convolutions", "segments"])
def test_gradients_of_parameters_are_those_of_the_reference(name):
    """With the statistics of the batch, whose gradient counts, and with running ones, which are constants."""
    case = package(name)
    engine, (x, y) = reference(case), data(case, 3)
    engine.train_parts([({"x0": x}, y)], BATCH, 0.0)
    of_batch, (_, of_running) = engine.gradients(), ReferenceEngine(case.program).loss_and_gradients({"x0": x}, y)
    with imported(case, "spiking_network") as [network]:
        for training, wanted in ((True, of_batch), (False, of_running)):
            model = network.TrainedNetwork().train(training)
            before = {name: b.clone() for name, b in model.network.named_buffers()}
            model(first(x), torch.from_numpy(y))[1].backward()
            for name, p in model.network.named_parameters():
                found, right = p.grad.numpy().reshape(wanted[name].shape), wanted[name]
                assert np.abs(found - right).max() <= 1e-4 * np.abs(right).max() + 1e-6, case.program.parameters[name].label
            changed = {name for name, b in model.network.named_buffers() if not torch.equal(b, before[name])}
            assert len(changed) == (4 if training else 0), "the statistics of two layers, in training alone"


@pytest.mark.representative("{'replicas': 2}", "{'iterations': 2, 'accumulation': 2}")
@pytest.mark.parametrize("chosen", [{"accumulation": 3}, {"replicas": 2}, {"iterations": 2, "accumulation": 2}], ids=str)
def test_micro_batches_have_their_own_statistics_as_parts_of_a_batch_on_the_reference(chosen):
    case = package("dense")
    engine, several = reference(case), chosen.get("accumulation", 1) * chosen.get("replicas", 1)
    with imported(case, "spiking_network", "train") as [network, script]:
        model, trained = trained_model(case, network, script, **chosen)
        for call in range(3):
            iterations = chosen.get("iterations", 1)
            x, y = data(case, call, iterations * several * BATCH)
            trained(first(x), torch.from_numpy(y))
            for k in range(iterations):
                parts = [slice((k * several + n) * BATCH, (k * several + n + 1) * BATCH) for n in range(several)]
                engine.train_parts(iter([({"x0": x[:, part]}, y[part]) for part in parts]), several * BATCH, RATE)
        wanted = engine.get_parameters()
        if chosen.get("replicas", 1) > 1:  # each replica has its own running statistics, here a run of its half of the samples
            norms = script.NETWORK["statistics"]
            for norm in norms:
                del wanted[norm["mean"]], wanted[norm["variance"]]
            assert any(bool((getattr(model.network, norm["mean"]) != 0).any()) for norm in norms)
        assert_same(case, model.network, wanted)


def test_replicas_that_share_changing_statistics_are_refused_as_in_poptorch():
    case = package("dense")
    with imported(case, "spiking_network", "train") as [network, script]:
        import poptorch

        model = network.TrainedNetwork()
        options = poptorch.Options().replicationFactor(2)
        trained = poptorch.trainingModel(model, options, script.optimizer_of(model.network))
        x, y = data(case, 0, 2 * BATCH)
        with pytest.raises(poptorch.Error, match=r"replicas change the buffer 'network\..*broadcastBuffers\(False\)"):
            trained(first(x), torch.from_numpy(y))


def test_the_script_saves_running_statistics_and_inference_uses_them(tmp_path):
    case = package("dense")
    x, y = data(case, 0, 2 * BATCH)
    save_file({"x0": np.swapaxes(x, 0, 1).copy(), "labels": y}, tmp_path / "data.safetensors")
    saved = str(tmp_path / "w.safetensors")
    with imported(case, "spiking_network", "train", "spiking_network.options") as [network, script, chosen]:
        import poptorch

        args = chosen.parser("").parse_args(["--data", str(tmp_path / "data.safetensors"), "--accumulation", "2", "--save", saved])
        script.train(args, chosen.chosen_options(args, poptorch.Options()))
        found = load_file(saved)
        module = network.SpikingNetwork(saved).eval()
        record = module(first(x[:, :BATCH])).detach().numpy()
    running = [norm for norm in script.NETWORK["statistics"] if norm["mean"] in found and norm["variance"] in found]
    assert len(running) == 1
    fixed = ReferenceEngine(case.program)
    fixed.set_parameters({name: value.reshape(case.program.parameters[name].value.shape) for name, value in found.items()})
    wanted = fixed.forward({"x0": x[:, :BATCH]}, {})[case.program.loss_output]
    np.testing.assert_allclose(record, np.swapaxes(wanted, 0, 1), rtol=1e-4, atol=1e-5)
    assert np.abs(found[running[0]["mean"]]).max() > 0


def test_a_session_of_a_trainable_package_runs_with_running_statistics():
    x = (np.random.default_rng(0).random((BATCH, STEPS, 24)) < 0.4).astype(np.float32)
    with snnc.open(package("dense").folder) as session, snnc.compile(dense(), **LIMITS) as wanted:
        assert [o.label for o in session.program.outputs] == ["output"]
        steps_first = x.swapaxes(0, 1)
        right = wanted.run(steps_first)["output"]
        assert np.abs(right).max() > 0.1
        np.testing.assert_allclose(session.run(steps_first)["output"], right, atol=1e-5)
        with pytest.raises(snnc.SnncError, match="SNNC-E510"):
            session.fit(x, np.zeros(BATCH, int))


def test_only_the_last_pass_counts_dropped_spikes():
    """As many as in a run with the statistics of this batch as the running ones."""
    x = (torch.from_numpy(np.random.default_rng(0).random((BATCH, STEPS, 24))) < 0.3).float()
    with imported(package("dense"), "spiking_network", "spiking_network.operation") as [network, of]:
        module, counts = network.SpikingNetwork(), []
        (norm,) = of.STATISTICS
        mean, variance = (getattr(module, norm[name]) for name in ("mean", "variance"))
        counts.append(of.dropped_spikes(module.run(x)[1]))
        mean.copy_(mean / NORM.momentum)
        variance.copy_((variance - (1 - NORM.momentum)) / NORM.momentum * (norm["values"] - 1) / norm["values"])
        counts.append(of.dropped_spikes(module.eval().run(x)[1]))
    assert counts[0] == counts[1] > 10


@pytest.mark.parametrize(
    ("norm", "optimizer", "sizes", "message"),
    [
        (snnc.BatchNorm(each_step=True), "sgd:0.1", (STEPS, BATCH), "statistics of each step, which a package"),
        (NORM, snnc.SGD(0.1, groups=(snnc.Group("*batchnorm.weight", frozen=True),)), (STEPS, BATCH), "is not trained, but in a package"),
        (NORM, "sgd:0.1", (1, 1), "one value per channel"),
    ],
    ids=["each step", "frozen gain", "one value"],
)
def test_what_a_package_cannot_train_is_refused(norm, optimizer, sizes, message):
    net = snnc.Sequential(6, snnc.Dense(5), norm, snnc.LIF(beta=0.8), snnc.Dense(3), snnc.LI(beta=0.9))
    with pytest.raises(NormalisationError, match=f"SNNC-E586: .*{message}"):
        snnc.compile(net, "poptorch", steps=sizes[0], batch=sizes[1], loss="ce_mean_membrane", optimizer=optimizer)
