"""Packages for PopTorch whose sources drop spikes: trained on the emulator by their own script, with the reference's results."""

import importlib

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from limited_nets import strokes as network  # noqa: E402  # torch is an extra
from option_cells import MACHINES  # noqa: E402
from poptorch_packages import imported  # noqa: E402
from safetensors.numpy import load_file, save_file  # noqa: E402

import snnc  # noqa: E402
from snnc.driver.compiling import compile_to_folder  # noqa: E402
from snnc.driver.folder import read_project  # noqa: E402
from snnc.driver.loading import as_graph  # noqa: E402
from snnc.options.compile_options import options  # noqa: E402

X, Y = (np.random.default_rng(0).random((16, 6, 24)) < 0.4).astype(np.float32), np.arange(16) % 4
LIMITED = {"loss": "ce_count", "optimizer": "adam:0.001", "surrogate": "superspike", "steps": 6, "batch": 4}
LIMITED |= {"mode": "drop", "capacity": "40 %", "gradient_window": -100}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A package that was compiled for 40 % of each source."""
    made = tmp_path_factory.mktemp("limits")
    (made / "one.toml").write_text(MACHINES["one.toml"])
    chosen = options(f"poptorch:{made / 'one.toml'}", **LIMITED)
    compile_to_folder(as_graph(network()), chosen, made / "package")
    return made / "package"


@pytest.mark.representative("random")
@pytest.mark.parametrize("policy", ["lowest", "random"])
def test_the_script_of_a_package_trains_with_the_published_schedule_as_the_reference_does(folder, tmp_path, policy, capsys):
    with snnc.compile(network(), "reference", drop=policy, seed=3, **LIMITED) as session:
        window = snnc.schedules.Exponential(-100, -0.1)
        wanted = session.fit(X, Y, epochs=1, shuffle=False, seed=None, gradient_window=window, capacity="linear:40,15,updates=4 %")
        right = {name: value.copy() for name, value in session.engine.get_parameters().items()}
        counted = session.counters()["dropped_spikes"]
        assert counted > 100
    save_file({"x0": X, "labels": Y}, tmp_path / "data.safetensors")
    words = ["--data", str(tmp_path / "data.safetensors"), "--save", str(tmp_path / "w.safetensors"), "--drop", policy, "--seed", "3"]
    words += ["--gradient-window", "exponential:-100,-0.1", "--capacity", "linear:40,15,updates=4 %"]
    words += ["--count-dropped"]
    project = read_project(folder)
    case = type("Case", (), {"folder": folder, "plan": project.plan})
    with imported(case, "train", "spiking_network.options") as [script, chosen]:
        import poptorch

        loader = poptorch.DataLoader
        script.poptorch.DataLoader = lambda *given, shuffle, **more: loader(*given, shuffle=False, **more)
        args = chosen.parser("").parse_args(words)
        (loss,) = script.train(args, chosen.chosen_options(args, poptorch.Options()))
        values = importlib.import_module("spiking_network.values")
        with pytest.raises(SystemExit, match="not a schedule"):
            values.schedule("cosine:1,2")
    assert f", {counted} spikes dropped" in capsys.readouterr().out
    assert loss == pytest.approx(np.ravel(wanted.batch_losses)[-1], rel=1e-5)
    for name, value in load_file(tmp_path / "w.safetensors").items():
        np.testing.assert_allclose(value, right[name], atol=2e-5, rtol=1e-4, err_msg=name)


def test_a_session_of_a_package_sends_what_the_reference_sends(folder):
    with snnc.compile(network(), "reference", **LIMITED) as reference, snnc.open(folder) as session:
        for capacity, policy in (("40 %", "lowest"), ("15 %", "random"), ({"a": 2, "*": 5}, "random")):
            found = []
            for one in (reference, session):
                one.capacity, one.drop = capacity, policy
                found.append(next(iter(one.run(X[:4].swapaxes(0, 1)).values())))
            np.testing.assert_array_equal(*found)
            assert found[0].any()
        assert session.counters()["dropped_spikes"] == reference.counters()["dropped_spikes"] > 0


def test_counts_cover_all_calls_of_an_update_and_the_compiled_capacity(folder, tmp_path, capsys):
    """Two updates of a call, of two micro-batches each; the host counts what it drops of the input, and the last loss is shown."""
    with snnc.compile(network(), "reference", **LIMITED) as session:
        session.fit(X, Y, epochs=1, batch=8, shuffle=False, seed=None)
        counted = session.counters()["dropped_spikes"]
    save_file({"x0": X, "labels": Y}, tmp_path / "data.safetensors")
    words = ["--data", str(tmp_path / "data.safetensors"), "--save", str(tmp_path / "w.safetensors"), "--device-iterations", "2"]
    found = {}
    for more in ([], ["--count-dropped"]):
        case = type("Case", (), {"folder": folder, "plan": read_project(folder).plan})
        with imported(case, "train", "spiking_network.options") as [script, chosen]:
            import poptorch

            loader = poptorch.DataLoader
            script.poptorch.DataLoader = lambda *given, shuffle, loader=loader, **more: loader(*given, shuffle=False, **more)
            args = chosen.parser("").parse_args([*words, "--accumulation", "2", *more])
            found[len(more)] = script.train(args, chosen.chosen_options(args, poptorch.Options()))
        assert (f", {counted} spikes dropped" in capsys.readouterr().out) == bool(more)
    assert found[0] == found[1]
