"""Training saves its progress: non-finite numbers stop it, and a file stores weights, moments and the position together."""

import errno
import json
import math
import os
import shutil
import signal
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from cuda_projects import opened
from wide import sampled

import snnc
from snnc.backends.runtime.errors import (
    CheckpointError,
    CheckpointIntervalError,
    DivergedError,
    ResumeError,
    WeightFileError,
    WeightNotFiniteError,
)
from snnc.backends.runtime.weights import load_weights, read_weight_file, weight_file_bytes
from snnc.backends.session import BackendSession
from snnc.backends.training.saving.checkpoint import Checkpoints, read_position, seconds_of
from snnc.compiler.files import durable
from snnc.compiler.losses import parse_loss
from snnc.compiler.lowering.lower import lower
from snnc.options.optimizers import parse_optimizer

TARGETS = ("reference", "cpu", "cuda", "gc200")
STEPS, SAMPLES, BATCH = 6, 23, 5
"""The last batch of an epoch is smaller where the target takes that."""


def net():
    return snnc.Sequential(6, snnc.Dense(5), snnc.LIF(beta=0.8), snnc.Dense(3), snnc.LI(), name="small")


def compiled(target="reference", **options):
    """A new session; projects are compiled once, because opening one takes a third of the time."""
    sizes = {"batch": BATCH} | ({"steps": STEPS} if target == "gc200" else {})
    chosen = {"loss": "ce_mean_membrane", "optimizer": "adam:0.01", **sizes, **options}
    if target == "cuda":
        return on_cuda_host(**chosen)
    return snnc.open(Path(project(target, tuple(chosen.items())).name) / "project")


@cache
def project(target, options):
    """The folder of a compiled project, deleted when the tests end."""
    folder = TemporaryDirectory()
    snnc.compile(net(), target, **dict(options), output=Path(folder.name) / "project").close()
    return folder


@contextmanager
def on_cuda_host(loss, optimizer, batch):
    """The CUDA program, built for the CPU."""
    program = lower(net().graph(), loss=parse_loss(loss), optimizer=parse_optimizer(optimizer))
    with opened(program) as engine, BackendSession(engine, program) as session:
        yield session


def samples(seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 2, (SAMPLES, STEPS, 6)).astype(np.uint8), rng.integers(0, 3, SAMPLES)


def state(session):
    kept = session.engine.get_optimizer()
    moments = {f"{moment} {name}": value for moment, values in kept.moments.items() for name, value in values.items()}
    return {**session.state_dict(), **moments, "updates": np.array(kept.updates)}


def assert_same(found, wanted):
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


# ---- numbers that are not finite -------------------------------------------------------------------------------------


@pytest.mark.representative("sgd:0.1,0.9-reference", "sgd:0.1,0.9-cpu", "adam:0.01-cuda")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("optimizer", ["sgd:0.1,0.9", "adam:0.01"])
def test_a_training_that_diverges_leaves_the_weights_of_the_last_good_epoch(target, optimizer):
    x, y = samples()
    with compiled(target, optimizer=optimizer) as session:
        session.fit(x, y, epochs=2, batch=BATCH)
        good = state(session)
        assert all(np.isfinite(value).all() for value in good.values())
        with pytest.raises(DivergedError, match=r"SNNC-E535: .*diverged.*after 0 of 3 epochs"):
            session.fit(x, y, epochs=3, batch=BATCH, learning_rate=1e38)
        assert_same(state(session), good)
        assert np.isfinite(session.fit(x, y).losses).all()


class WithBadParameter:
    """An engine whose parameter becomes NaN at an update, although its loss stays finite."""

    def __init__(self, engine, at):
        self._engine, self._left = engine, at

    def __getattr__(self, name):
        return getattr(self._engine, name)

    def train_batch(self, inputs, target, learning_rate):
        loss = self._engine.train_batch(inputs, target, learning_rate)
        self._left -= 1
        if self._left == 0:
            name, value = next((n, v) for n, v in self._engine.get_parameters().items() if v.size > 1)
            value.reshape(-1)[:2] = np.nan, np.inf
            self._engine.set_parameters({name: value})
        return min(loss, 1.0) if math.isfinite(loss) else 1.0


def test_a_parameter_that_is_not_finite_stops_training_although_the_loss_is_finite(tmp_path):
    x, y = samples()
    batches = -(-SAMPLES // BATCH)
    with compiled() as whole, compiled() as session:
        whole.fit(x, y, epochs=2)
        session.engine = WithBadParameter(session.engine, 2 * batches + 1)
        with pytest.raises(DivergedError, match=r"after 3 of 4 epochs, \d+ of \d+ values of .* are not finite.*weights after 2 of 4"):
            session.fit(x, y, epochs=4, checkpoints=Checkpoints(tmp_path / "kept"))
        assert_same(state(session), state(whole))
        session.load(tmp_path / "kept")
        assert_same(state(session), state(whole))
        assert read_position(tmp_path / "kept").epoch == 2


def test_weights_that_are_not_finite_are_never_saved(tmp_path):
    with compiled() as session:
        session.save(tmp_path / "w")
        before = (tmp_path / "w").read_bytes()
        name, value = next(iter(session.engine.get_parameters().items()))
        session.engine.set_parameters({name: np.full_like(value, np.inf)})
        with pytest.raises(WeightNotFiniteError):
            session.save(tmp_path / "w")
        assert (tmp_path / "w").read_bytes() == before
        with pytest.raises(DivergedError, match="before training began"):
            session.fit(*samples())


# ---- checkpoints -----------------------------------------------------------------------------------------------------


class Ended(Exception):
    """Stands for the end of a process."""


def ended_at(batch):
    """A callback that ends training after so many batches."""
    left = [batch]

    def callback(_):
        left[0] -= 1
        if left[0] == 0:
            raise Ended

    return callback


@pytest.mark.representative("6-reference", "6-cpu", "4-reference", "4-cuda", "4-gc200")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("at", sampled([6, 1, 4, 8], 2))
def test_a_resumed_training_ends_with_the_bits_of_one_that_nobody_stopped(tmp_path, target, at):
    x, y = samples()
    call = {"epochs": 2, "seed": 7, "batch": BATCH, "accumulate": 2 if target == "cpu" else 1}
    with compiled(target) as whole:
        losses = whole.fit(x, y, **call).batch_losses
        wanted = state(whole)
    with compiled(target) as first, pytest.raises(Ended):
        first.fit(x, y, **call, callback=ended_at(at), checkpoints=Checkpoints(tmp_path / "kept", every=1e-9))
    with compiled(target) as second:
        history = second.fit(x, y, **call, checkpoints=Checkpoints(tmp_path / "kept", resume=True))
        assert history.batch_losses == losses[-len(history.losses) :]
        assert_same(state(second), wanted)
        assert read_position(tmp_path / "kept").finished
        assert second.fit(x, y, **call, checkpoints=Checkpoints(tmp_path / "kept", resume=True)).losses == []
        assert_same(state(second), wanted)


def test_with_no_time_between_checkpoints_only_epochs_are_kept(tmp_path):
    x, y = samples()
    with compiled() as session, pytest.raises(Ended):
        session.fit(x, y, epochs=3, callback=ended_at(8), checkpoints=Checkpoints(tmp_path / "kept", every="none"))
    found = read_position(tmp_path / "kept")
    assert (found.epoch, found.batch, found.batches, found.until) == (1, 0, 5, 3)


def test_a_training_that_begins_is_kept_so_that_a_place_that_cannot_be_written_is_known_at_once(tmp_path):
    x, y = samples()
    with compiled() as session, pytest.raises(CheckpointError, match=r"SNNC-E538: .*no such file"):
        session.fit(x, y, checkpoints=Checkpoints(tmp_path / "missing" / "kept"))
    with compiled() as session, pytest.raises(Ended):
        wanted = state(session)
        session.fit(x, y, callback=ended_at(1), checkpoints=Checkpoints(tmp_path / "kept", every="none"))
    with compiled() as session:
        session.load(tmp_path / "kept")
        assert_same(state(session), wanted)


@pytest.mark.parametrize("step", ["open", "fsync", "replace"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EIO])
def test_a_checkpoint_that_cannot_be_written_leaves_the_last_one_whole(tmp_path, monkeypatch, step, number):
    x, y = samples()
    place = tmp_path / "kept"
    failing = []

    def fail(*_, **__):
        raise OSError(number, os.strerror(number))

    def spoil(_):
        if not failing:
            failing.append(place.read_bytes())
            target = {"open": (durable, "_without_links"), "fsync": (os, "fsync"), "replace": (durable.Path, "replace")}[step]
            monkeypatch.setattr(*target, fail)

    with compiled() as session:
        with pytest.raises(CheckpointError, match=rf"SNNC-E538: .*{os.strerror(number).lower()}"):
            session.fit(x, y, epochs=2, on_epoch=spoil, checkpoints=Checkpoints(place))
        monkeypatch.undo()
        assert place.read_bytes() == failing[0]
        assert os.listdir(tmp_path) == ["kept"]
        assert np.isfinite(session.fit(x, y).losses).all()


def test_a_folder_that_vanishes_is_an_error_with_a_code(tmp_path):
    x, y = samples()
    (tmp_path / "p").mkdir()
    with compiled() as session, pytest.raises(CheckpointError, match="SNNC-E538"):
        checkpoints = Checkpoints(tmp_path / "p" / "kept")
        session.fit(x, y, epochs=2, on_epoch=lambda _: shutil.rmtree(tmp_path / "p"), checkpoints=checkpoints)


def test_the_file_and_its_name_are_on_the_disk_before_training_goes_on(tmp_path, monkeypatch):
    happened = []
    sync, replace = os.fsync, durable.Path.replace
    monkeypatch.setattr(
        os, "fsync", lambda handle: (happened.append(os.path.basename(os.readlink(f"/proc/self/fd/{handle}"))), sync(handle))
    )
    monkeypatch.setattr(durable.Path, "replace", lambda self, to: (happened.append("rename"), replace(self, to))[1])
    with compiled() as session:
        session.fit(*samples(), checkpoints=Checkpoints(tmp_path / "kept"))
    assert happened == 2 * [".kept.part", "rename", tmp_path.name]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_after_the_batch_that_runs_and_what_was_reached_is_kept(tmp_path, number):
    x, y = samples()
    taken = []
    before = signal.signal(number, lambda *_: taken.append("after"))
    try:
        with compiled() as session:
            session.fit(
                x,
                y,
                epochs=3,
                callback=lambda p: signal.raise_signal(number) if (p.epoch, p.batch) == (1, 2) else None,
                checkpoints=Checkpoints(tmp_path / "kept", every="none"),
            )
            found = read_position(tmp_path / "kept")
            assert (found.epoch, found.batch) == (1, 3)
            kept = state(session)
            assert taken == ["after"]
            assert signal.getsignal(number) is not before
        with compiled() as session:
            session.load(tmp_path / "kept")
            assert_same(state(session), kept)
    finally:
        signal.signal(number, before)


def test_a_second_ctrl_c_stops_at_once(tmp_path):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with compiled() as session, pytest.raises(KeyboardInterrupt):
            session.fit(
                *samples(),
                epochs=3,
                callback=lambda p: [signal.raise_signal(signal.SIGINT) for _ in range(2)],
                checkpoints=Checkpoints(tmp_path / "kept", every="none"),
            )
        assert (read_position(tmp_path / "kept").epoch, read_position(tmp_path / "kept").batch) == (0, 0)
    finally:
        signal.signal(signal.SIGINT, before)


# ---- what does not fit -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def kept_once(tmp_path_factory):
    """The checkpoint of a training that ended in its second epoch."""
    x, y = samples()
    kept = tmp_path_factory.mktemp("progress") / "kept"
    with compiled() as session, pytest.raises(Ended):
        session.fit(x, y, epochs=3, seed=7, callback=ended_at(7), checkpoints=Checkpoints(kept, every=1e-9))
    return kept


@pytest.fixture
def stopped(kept_once, tmp_path):
    """A copy of that checkpoint."""
    return Path(shutil.copy(kept_once, tmp_path / "kept"))


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ({"seed": 8}, "seed 7, here 8"),
        ({"batch": 4}, "batch 5, here 4"),
        ({"shuffle": False, "seed": None}, "shuffle True, here False"),
        ({"accumulate": 2}, "accumulate 1, here 2"),
        ({"learning_rate": 0.5}, "learning_rate None, here 0.5"),
        ({"y": samples(1)[1]}, "labels"),
        ({"x": samples()[0][:20], "y": samples()[1][:20]}, "samples 23, here 20"),
    ],
)
def test_another_training_is_not_resumed(stopped, other, says):
    x, y = samples()
    with compiled() as session:
        before = state(session)
        with pytest.raises(ResumeError, match=f"SNNC-E537.*{says}"):
            session.fit(**{"x": x, "y": y, "epochs": 3, "seed": 7, "checkpoints": Checkpoints(stopped, resume=True)} | other)
        assert_same(state(session), before)


def test_weights_without_a_position_are_not_resumed(tmp_path):
    with compiled() as session:
        session.save(tmp_path / "w", optimizer=True)
        with pytest.raises(ResumeError, match="no position of a training"):
            session.fit(*samples(), checkpoints=Checkpoints(tmp_path / "w", resume=True))


def without(data, key):
    data.pop(key)


@pytest.mark.parametrize(
    "damage",
    [
        lambda d: without(d, "epoch"),
        lambda d: without(d, "recipe"),
        lambda d: d.update(epoch=-1),
        lambda d: d.update(epoch=1.5),
        lambda d: d.update(batch=4),
        lambda d: d.update(batches=True),
        lambda d: d.update(recipe=[]),
        lambda d: d["recipe"].update(seed="7"),
        lambda d: d["recipe"].update(learning_rate=[]),
        lambda d: d["recipe"].update(shuffle=1),
    ],
)
def test_a_damaged_position_is_an_error_with_a_code(stopped, damage):
    entries, metadata = read_weight_file(stopped)
    data = json.loads(metadata["training"])
    damage(data)
    stopped.write_bytes(weight_file_bytes(entries, {"training": json.dumps(data)}))
    with pytest.raises(WeightFileError, match="SNNC-E516"):
        read_position(stopped)
    with compiled() as session, pytest.raises(WeightFileError):
        session.fit(*samples(), epochs=3, seed=7, checkpoints=Checkpoints(stopped, resume=True))


def test_a_checkpoint_is_a_file_of_weights_like_others(stopped):
    with compiled() as session:
        session.load(stopped)
        loaded = state(session)
    entries = load_weights(stopped)
    assert {name for name in entries if name.startswith("training:")} == {"training:losses"}
    assert loaded["updates"] == 6  # the callback of the seventh came before it was kept


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30),
        ("5m", 300),
        ("1h", 3600),
        ("250ms", 0.25),
        ("1.5m", 90),
        (7, 7),
        (".5", 0.5),
        ("none", math.inf),
        (0, math.inf),
        ("0m", math.inf),
    ],
)
def test_times_between_checkpoints(text, seconds):
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-5m", "5 years", "m", "1e3", "nan", "5m5m", -1, math.nan, math.inf, True])
def test_what_is_no_time_is_refused(text):
    with pytest.raises(CheckpointIntervalError, match="SNNC-E539"):
        seconds_of(text)
