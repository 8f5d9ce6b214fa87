"""Data sets and streams train like arrays: validation, stopping, logs, and the same bits after an interruption."""

import csv
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from test_progress import BATCH, SAMPLES, STEPS, TARGETS, Ended, assert_same, compiled, ended_at, samples, state

import snnc
from snnc.backends.folders.folder_lock import FolderInUseError
from snnc.backends.runtime.errors import BatchesError, DivergedError, ResumeError, TrainingOptionError
from snnc.backends.training.saving.checkpoint import Checkpoints, read_position
from snnc.backends.training.schedules import LinearSchedule, Plateau


@dataclass(frozen=True)
class Flipped:
    """Turns one spike around, which one follows from epoch and sample."""

    seed: int = 0
    gives_time = False

    def apply(self, sample, draw):
        chosen = int(draw.stream(self.seed).permutation(sample.size)[0])
        changed = sample.copy()
        changed.reshape(-1)[chosen] = 1 - changed.reshape(-1)[chosen]
        return changed


def data_set(seed=0):
    x, y = samples(seed)
    return snnc.data.in_memory(x, y).map(Flipped())


def cut(x, y):
    return [(x[at : at + BATCH], y[at : at + BATCH]) for at in range(0, len(x), BATCH)]


@dataclass
class Renewed:
    """Batches that come again in each epoch, and do not say how many there are."""

    batches: list = field(default_factory=lambda: cut(*samples()))

    def __iter__(self):
        yield from self.batches


HELD = samples(1)
SOURCES = {"data set": data_set, "list": lambda: cut(*samples()), "iterable": Renewed}
CALL = {"epochs": 6, "validation": HELD, "patience": 3, "learning_rate": Plateau(0.3, 0.5, patience=0)}


@pytest.mark.representative("reference", "cpu")
@pytest.mark.parametrize("target", TARGETS)
def test_a_data_set_trains_as_its_arrays_with_all_that_is_watched(tmp_path, target):
    x, y = samples()
    whole = CALL | {"epochs": 3, "batch": BATCH, "seed": 7, "restore_best": True, "metrics": ["top_2"]}
    with compiled(target) as session:
        wanted = session.fit(x, y, **whole, best=tmp_path / "a", log=tmp_path / "a.csv")
        kept = state(session)
    with compiled(target) as session:
        held = snnc.data.in_memory(*HELD)
        given = snnc.data.in_memory(x, y)
        found = session.fit(given, **whole | {"validation": held}, best=tmp_path / "b", log=tmp_path / "b.csv")
        assert found.batch_losses == wanted.batch_losses
        assert [v.loss for v in found.validation] == pytest.approx([v.loss for v in wanted.validation], rel=1e-6)
        assert [v.metrics for v in found.validation] == [v.metrics for v in wanted.validation]
        assert (found.best_epoch, found.dropped) == (wanted.best_epoch, wanted.dropped)
        assert_same(state(session), kept)
    rows = [list(csv.DictReader((tmp_path / name).open())) for name in ("a.csv", "b.csv")]
    assert [row["loss"] for row in rows[0]] == [row["loss"] for row in rows[1]]


@pytest.mark.representative("3-reference-*", "7-cpu-data set")
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("target", ["reference", "cpu", "gc200"])
@pytest.mark.parametrize("at", [3, 7, 14])
def test_a_resumed_training_ends_with_the_bits_of_one_that_nobody_stopped(tmp_path, target, source, at):
    call = call_of(source)
    history, wanted, rows = uninterrupted(target, source)
    kept, log = tmp_path / "kept", tmp_path / "log.csv"
    with compiled(target) as first, pytest.raises(Ended):
        first.fit(SOURCES[source](), **call, callback=ended_at(at), checkpoints=Checkpoints(kept, every=1e-9), log=log)
    assert read_position(kept).updates >= at - 1
    with compiled(target) as second:
        found = second.fit(SOURCES[source](), **call, checkpoints=Checkpoints(kept, resume=True), log=log)
        assert [v.loss for v in found.validation] == [v.loss for v in history.validation][-len(found.validation) :]
        assert (found.best_epoch, found.stopped_early) == (history.best_epoch, history.stopped_early)
        assert_same(state(second), wanted)
    assert without_seconds(log) == rows


def call_of(source):
    return CALL | ({"batch": BATCH, "seed": 7} if source == "data set" else {})


@cache
def uninterrupted(target, source):
    """The history, the final state and the log of a training that nobody stopped."""
    with TemporaryDirectory() as folder, compiled(target) as session:
        log = Path(folder) / "whole.csv"
        return session.fit(SOURCES[source](), **call_of(source), log=log), state(session), without_seconds(log)


def without_seconds(log):
    return [{**row, "seconds": 0} for row in csv.DictReader(log.open())]


def test_a_resumed_training_reads_only_what_is_left_of_the_epoch(tmp_path):
    read = []

    class Counted:
        def __len__(self):
            return SAMPLES

        def batches(self, size, *, order=None, epoch=0):
            read.append(len(order))
            return snnc.data.in_memory(*samples()).batches(size, order=order, epoch=epoch)

    kept = tmp_path / "kept"
    with compiled() as session, pytest.raises(Ended):
        session.fit(Counted(), callback=ended_at(3), checkpoints=Checkpoints(kept, every=1e-9))
    done = read_position(kept).batch
    with compiled() as session:
        session.fit(Counted(), checkpoints=Checkpoints(kept, resume=True))
    assert done > 0
    assert read == [SAMPLES, SAMPLES - done * BATCH]


def test_a_stream_that_does_not_repeat_its_batches_is_not_resumed(tmp_path):
    kept, batches = tmp_path / "kept", cut(*samples())
    with compiled() as session, pytest.raises(Ended):
        session.fit(batches, callback=ended_at(3), checkpoints=Checkpoints(kept, every=1e-9))
    for other in (batches[::-1], batches[:1]):
        with compiled() as session, pytest.raises(ResumeError, match=r"SNNC-E5\d\d: the list does not repeat the \d batches of epoch 1"):
            session.fit(other, checkpoints=Checkpoints(kept, resume=True))
    with compiled() as session:
        session.fit((b for b in batches), checkpoints=Checkpoints(kept, resume=True))
        found = state(session)
    with compiled() as session:
        session.fit(batches)
        assert_same(found, state(session))


def test_another_data_set_is_not_resumed(tmp_path):
    kept = tmp_path / "kept"
    with compiled() as session:
        session.fit(data_set(), checkpoints=Checkpoints(kept))
    first, second = snnc.data.in_memory(*samples()).split(0.5)
    for other in (snnc.data.in_memory(*samples()), data_set().map(Flipped(1)), first, second):
        with compiled() as session, pytest.raises(ResumeError, match="labels"):
            session.fit(other, epochs=2, batch=BATCH, checkpoints=Checkpoints(kept, resume=True))


def test_a_schedule_in_epochs_knows_how_many_updates_a_data_set_has():
    seen, rate = [], LinearSchedule(0.1, 0.01, epochs=2)
    with compiled() as session:
        session.fit(data_set(), epochs=3, learning_rate=rate, callback=seen.append)
    assert [p.update for p in seen] == list(range(15))
    assert [p.learning_rate for p in seen] == [LinearSchedule(0.1, 0.01, updates=10)(p.update) for p in seen]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_data_set_that_makes_training_diverge_leaves_the_last_good_epoch(tmp_path):
    with compiled() as session:
        session.fit(data_set())
        good = state(session)
        with pytest.raises(DivergedError, match=r"SNNC-E535.*after 0 of 2 epochs"):
            session.fit(data_set(), epochs=2, learning_rate=1e38, checkpoints=Checkpoints(tmp_path / "kept"))
        assert_same(state(session), good)


def test_a_data_set_that_gives_other_batches_than_asked_is_refused():
    class Wrong:
        def __init__(self, less):
            self.less = less

        def __len__(self):
            return SAMPLES

        def batches(self, size, *, order=None, epoch=0):
            return snnc.data.in_memory(*samples()).batches(size - self.less, order=order[: len(order) - 3 + 3 * self.less])

    with compiled() as session, pytest.raises(BatchesError, match=r"SNNC-E570: batch 1 of the Wrong has 4 samples, but 5 samples"):
        session.fit(Wrong(1))
    with compiled() as session, pytest.raises(BatchesError, match=r"yielded 4 batches in epoch 1, not 5"):
        session.fit(Wrong(0))


def test_an_empty_validation_is_refused_and_so_is_what_is_neither_arrays_nor_a_data_set():
    none = snnc.data.in_memory(*samples()).take([])
    with compiled() as session, pytest.raises(BatchesError, match="validation data set has no samples"):
        session.fit(data_set(), validation=none)
    with compiled() as session, pytest.raises(TrainingOptionError, match="or a data set"):
        session.fit(data_set(), validation=3)


@pytest.mark.parametrize("target", ["reference", "cpu", "gc200"])
def test_the_metric_of_spikes_is_the_mean_of_a_sample_in_each_layer(target, tmp_path):
    with compiled(target) as session:
        options = {"batch": BATCH, "metrics": ["spikes"], "log": tmp_path / "log.csv"}
        found = session.fit(*samples(), validation=HELD, **options).validation[0].metrics
        again = session.fit(*samples(), validation=snnc.data.in_memory(*HELD), learning_rate=0.0, **options).validation[0].metrics
        recording = session.record_samples(HELD[0][:16], 16)
    assert len(found) == 2
    assert found == again == {f"spikes_{train.label}": len(train.ids) / 16 for train in recording.trains}
    assert found["spikes_input"] == HELD[0][:16].sum() / 16
    assert "validation_spikes_input" in (tmp_path / "log.csv").read_text()


def test_two_trainings_do_not_write_one_file_of_best_weights(tmp_path):
    best = tmp_path / "best"

    def second(_):
        with compiled() as other, pytest.raises(FolderInUseError, match=r"SNNC-E417: the file .*best"):
            other.fit(*samples(), validation=HELD, best=best)

    with compiled() as session:
        session.fit(*samples(), validation=HELD, best=best, on_epoch=second)
        with pytest.raises(TrainingOptionError, match="best and checkpoints"):
            session.fit(*samples(), validation=HELD, best=best, checkpoints=Checkpoints(best))
    assert [p.name for p in tmp_path.iterdir()] == ["best"]


assert STEPS > 1
