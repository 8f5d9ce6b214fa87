"""Processes that train a session together, compared with one process that gets whole batches."""

import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from ranks_cases import ALWAYS, BATCH, CASES, NORMALISED, SAMPLES, fitted, samples_of, session_of

import snnc
from snnc.backends.cuda.errors import CHECK_ON_HOST
from snnc.backends.runtime.errors import RanksGroupError, ShareError, UnsharedTargetError
from snnc.backends.training.saving.checkpoint import read_position
from snnc.backends.training.updates import ranks
from snnc.compiler.errors import ToolMissingError

HERE = Path(__file__).parent
SIZE = 2


def environment(rank, size=SIZE, port="29500"):
    """What torchrun tells a process."""
    return {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return str(found.getsockname()[1])


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """What each process wrote, and the folder of the project that the command trained."""
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("ranks")
    net = snnc.Sequential(6, snnc.Dense(8), snnc.LIF(), snnc.Dense(4), snnc.LI())
    options = {"loss": "ce_mean_membrane", "optimizer": "adam:0.01", "batch": 8, "threads": 1}
    x, y = samples_of(CASES["on a device"].program())
    np.savez(folder / "data.npz", x=x["x"] > 0, y=y)
    for name in ("together", "alone"):
        snnc.compile(net, "cpu", output=folder / name, **options).close()
    started = subprocess.Popen(
        [sys.executable, str(HERE / "train_together.py"), str(folder)],
        env=os.environ | environment(0, port=free_port()) | {"PYTHONPATH": os.pathsep.join(sys.path), CHECK_ON_HOST: "1"},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        _, errors = started.communicate(timeout=300)
        assert started.returncode == 0, errors[-3000:]
    finally:
        with suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGKILL)
    return [dict(np.load(folder / f"rank{rank}.npz")) for rank in range(SIZE)], folder


def part(found, name):
    return {label.removeprefix(f"{name}/"): value for label, value in found.items() if label.startswith(f"{name}/")}


@pytest.mark.wide
@pytest.mark.parametrize("name", CASES)
def test_processes_train_as_one_that_sees_whole_batches(trained, name):
    values, losses = fitted(name, **{"accumulate": 1})
    first, second = (part(found, name) for found in trained[0])
    assert first.keys() == second.keys() == {*values, "losses"}
    for label, value in first.items():
        np.testing.assert_array_equal(value, second[label], err_msg=label)
    np.testing.assert_allclose(first.pop("losses"), losses, rtol=2e-6)
    moved = {label: value for label, value in values.items() if label != "updates"}
    assert first["updates"] == values["updates"] == losses.size
    for label, value in moved.items():
        np.testing.assert_allclose(first[label], value, atol=2e-6, rtol=2e-5, err_msg=label)


@pytest.mark.representative(*ALWAYS)
@pytest.mark.parametrize("name", NORMALISED)
def test_processes_normalise_over_the_samples_of_all(trained, name):
    first, second = (part(found, name) for found in trained[0])
    for label, value in first.items():
        np.testing.assert_array_equal(value, second[label], err_msg=label)
    values, losses = fitted(name, **{"accumulate": 1})
    if "accumulate" in NORMALISED[name].fit:  # each part has its own statistics: a share of the samples of each process
        assert np.isfinite(first["losses"]).all()
        return
    np.testing.assert_allclose(first.pop("losses"), losses, rtol=5e-6)
    for label, value in values.items():
        np.testing.assert_allclose(first[label], value, atol=5e-6, rtol=5e-5, err_msg=label)


@pytest.mark.wide
def test_the_same_processes_give_the_same_bits_again(trained):
    first = trained[0][0]
    for label, value in part(first, "again").items():
        np.testing.assert_array_equal(value, first[f"learned neurons/{label}"], err_msg=label)


@pytest.mark.wide
def test_processes_can_be_told_to_train_by_themselves(trained):
    for seed, found in enumerate(trained[0]):
        values, _ = fitted("learned neurons", seed=seed)
        for label, value in part(found, "alone").items():
            np.testing.assert_array_equal(value, values[label], err_msg=label)


@pytest.mark.wide
@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("labels", "labels"),
        ("schedule", "the seed"),
        ("optimizer", "optimizer"),
        ("network", "the network"),
        ("rates", "trained parameters"),
    ],
)
def test_processes_that_disagree_are_told_so(trained, what, said):
    for found in trained[0]:
        text = str(found[f"refused/{what}"])
        assert "rank 1 and rank 0 differ in" in text
        assert said in text


def test_the_command_trains_together_and_the_first_process_writes(trained, monkeypatch):
    found, folder = trained
    first, second = (str(one["command/said"]) for one in found)
    assert "epoch 2: loss" in first
    assert not second
    with snnc.open(folder / "alone") as session, snnc.open(folder / "together") as together:
        data = np.load(folder / "data.npz")
        history = session.fit(data["x"], data["y"], epochs=2)
        for label, value in session.state_dict().items():
            np.testing.assert_allclose(together.state_dict()[label], value, atol=2e-6, rtol=2e-5)
        assert f"epoch 2: loss {history.losses[1]:.4f}" in first


@pytest.mark.wide
def test_a_signal_to_one_process_stops_all_after_one_batch_and_they_go_on_as_one_that_nobody_stopped(trained):
    first, second = (part(one, "stopped") for one in trained[0])
    whole = {f"resumed {label}": value for label, value in part(trained[0][0], "whole").items()}
    assert first["ends"].tolist() == second["ends"].tolist() == ["stopped"]
    for label, value in first.items():
        np.testing.assert_array_equal(second[label], value, err_msg=label)
        if label in whole:
            np.testing.assert_array_equal(whole[label], value, err_msg=label)
    assert read_position(trained[1] / "stopped.safetensors").finished


def test_processes_share_a_data_set_and_its_validation(trained):
    first, second = (part(one, "watched") for one in trained[0])
    for label, value in first.items():
        np.testing.assert_array_equal(second[label], value, err_msg=label)
    with session_of("learned neurons") as session:
        x, y = samples_of(session.program)
        held = {name: values[: SAMPLES - 2] for name, values in x.items()}, y[: SAMPLES - 2]
        options = {"batch": BATCH, "epochs": 3, "seed": 5, "metrics": ["confusion"], "restore_best": True}
        history = session.fit(x, y, validation=held, **options)
        np.testing.assert_allclose(first["losses"], history.batch_losses, rtol=2e-6)
        np.testing.assert_allclose(first["validation"], [(v.loss, v.accuracy) for v in history.validation], rtol=1e-5)
        np.testing.assert_array_equal(first["confusion"], history.validation[-1].metrics["confusion"])
        assert first["best"] == history.best_epoch
        for label, value in session.state_dict().items():
            np.testing.assert_allclose(first[label], value, atol=2e-6, rtol=2e-5, err_msg=label)
    assert len((trained[1] / "log.csv").read_text().splitlines()) == 4


def told(monkeypatch, size=SIZE, **other):
    for name, value in (environment(0, size) | other).items():
        monkeypatch.setenv(name, value)


def test_what_cannot_be_shared_is_refused(monkeypatch):
    told(monkeypatch, size=8)
    with session_of("learned neurons") as session:
        x, y = samples_of(session.program)
        with pytest.raises(ShareError, match="7 samples cannot be shared by 8 processes"):
            session.fit(x, y, batch=7)
        monkeypatch.setitem(sys.modules, "torch", None)
        with pytest.raises(ToolMissingError, match="pip install torch"):
            session.fit(x, y, batch=8)
    net = snnc.Sequential(6, snnc.Dense(4), snnc.LI())
    with snnc.compile(net, loss="ce_mean_membrane") as session:
        with pytest.raises(UnsharedTargetError, match="'cpu' and 'cuda'"):
            session.fit(x["x"] > 0, y)
        session.fit(x["x"] > 0, y, distributed=False)


def test_processes_that_do_not_find_each_other_are_told_so(monkeypatch):
    pytest.importorskip("torch")
    told(monkeypatch, MASTER_PORT="none")
    with session_of("learned neurons") as session, pytest.raises(RanksGroupError, match="MASTER_PORT=none"):
        x, y = samples_of(session.program)
        session.fit(x, y)


@pytest.mark.parametrize(
    ("backends", "device", "place"),
    [
        ("cpu:gloo,cuda:gloo", None, "cpu"),
        ("cpu:gloo,cuda:gloo", 1, "cpu"),
        ("cuda:nccl", 1, "cuda:1"),
        ("cpu:gloo,cuda:nccl", 0, "cuda:0"),
        ("cpu:gloo,cuda:nccl", None, "cpu"),
    ],
)
def test_gradients_are_summed_on_the_device_where_what_sends_can(backends, device, place):
    assert ranks.summing_device(backends, device) == place


def test_a_group_that_sends_device_memory_only_is_refused_on_the_processor():
    with pytest.raises(RanksGroupError, match="cuda:nccl"):
        ranks.summing_device("cuda:nccl", None)


class Recorder:
    """Stands where torch, its process group and an engine do, and notes what is called; what it returns is of no interest."""

    def __init__(self, calls, name="", fails=""):
        self.calls, self.name, self.fails = calls, name, fails

    def __getattr__(self, name):
        return Recorder(self.calls, name, self.fails)

    def __call__(self, *_, **__):
        self.calls.append(self.name)
        if self.name == self.fails:
            raise RuntimeError("Duplicate GPU detected\nand so on")
        return self

    def __setitem__(self, index, _):
        self.calls.append({-2: "loss", -1: "stop"}[index])

    def __getitem__(self, _):
        return 1.0

    def __add__(self, _):
        return 1


def test_kernels_of_the_program_are_over_before_nccl_sums_and_its_own_before_the_update(monkeypatch):
    calls = []
    monkeypatch.setattr(ranks, "_joined", lambda _: (Recorder(calls), Recorder(calls)))
    monkeypatch.setattr(ranks, "summing_device", lambda *_: "cuda:0")
    together = ranks.Ranks(Recorder(calls))
    assert calls[-1] == "synchronize"
    calls.clear()
    together.update(1.0, True, 1e-2, False)
    called = [name for name in calls if name not in ("data_ptr", "current_stream")]
    assert called == ["gradients_to", "loss", "stop", "all_reduce", "synchronize", "gradients_from", "change_parameters"]


def test_what_torch_says_of_processes_that_do_not_reach_each_other_is_told(monkeypatch):
    monkeypatch.setattr(ranks, "_joined", lambda _: (Recorder([]), Recorder([], fails="all_reduce")))
    monkeypatch.setattr(ranks, "summing_device", lambda *_: "cuda:0")
    with pytest.raises(RanksGroupError, match=r"Duplicate GPU detected$"):
        ranks.Ranks(Recorder([])).update(1.0, True, 1e-2, False)
