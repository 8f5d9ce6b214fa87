"""Validation, early stopping, the best weights and logs: on every target, and with the same bits after an interruption."""

import csv

import numpy as np
import pytest
from test_progress import BATCH, TARGETS, Ended, assert_same, compiled, ended_at, samples, state

import snnc
from snnc.backends.folders.folder_lock import FolderInUseError
from snnc.backends.runtime.errors import ResumeError, TrainingOptionError
from snnc.backends.training.saving.checkpoint import Checkpoints, read_position
from snnc.backends.training.schedules import LinearSchedule, Plateau, ScheduleError
from snnc.backends.training.validation.logs import LogError
from snnc.backends.training.validation.metrics import MetricError, checked_metrics, value_of
from snnc.backends.training.validation.stopping import Stopping
from snnc.compiler.losses import parse_loss

HELD = samples(1)
WATCHED = {"validation": HELD, "metrics": ["top_2", "confusion"], "patience": 2, "monitor": "loss"}


def scores_of(session):
    x, _ = HELD
    (info,) = session.program.outputs
    found = [session.run(np.swapaxes(x[at : at + 1], 0, 1))[info.label] for at in range(len(x))]
    return np.concatenate([np.asarray(one).reshape(x.shape[1], 1, -1) for one in found], axis=1)


@pytest.mark.representative("reference", "cpu", "gc200")
@pytest.mark.parametrize("target", TARGETS)
def test_the_validation_is_the_loss_and_the_accuracy_of_the_weights_after_each_epoch(target):
    with compiled(target) as session:
        history = session.fit(*samples(), epochs=2, batch=BATCH, validation=HELD, metrics=["top_2", "confusion", "f1"])
        found, output, labels = history.validation[-1], scores_of(session), HELD[1]
        wanted = parse_loss("ce_mean_membrane").value_and_gradient(output, labels)[0]
        assert found.loss == pytest.approx(float(wanted), rel=1e-5)
        assert found.accuracy == session.evaluate(*HELD)
        assert found.metrics["confusion"].sum() == len(labels)
        assert np.trace(found.metrics["confusion"]) == pytest.approx(found.accuracy * len(labels))
        assert found.metrics["top_2"] >= found.accuracy


@pytest.mark.representative("reference", "cpu")
@pytest.mark.parametrize("target", TARGETS)
def test_validation_changes_no_bit_of_the_training(target):
    with compiled(target) as plain, compiled(target) as watched:
        plain.fit(*samples(), epochs=2, batch=BATCH)
        watched.fit(*samples(), epochs=2, batch=BATCH, validation=HELD)
        assert_same(state(watched), state(plain))


CALL = {"epochs": 8, "seed": 7, "batch": BATCH, "validation": HELD, "patience": 3, "learning_rate": Plateau(0.3, 0.5, patience=0)}


@pytest.mark.representative("13-reference", "7-cpu")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("at", [7, 13])
def test_a_resumed_training_stops_and_reduces_where_one_that_nobody_stopped_does(tmp_path, target, at):
    x, y = samples()
    call = CALL | {"restore_best": True, "best": tmp_path / "best"}
    with compiled(target) as whole:
        history = whole.fit(x, y, **call | {"best": tmp_path / "whole"}, log=tmp_path / "whole.csv")
        wanted = state(whole)
    log = tmp_path / "log.csv"
    with compiled(target) as first, pytest.raises(Ended):
        first.fit(x, y, **call, callback=ended_at(at), checkpoints=Checkpoints(tmp_path / "kept", every=1e-9), log=log)
    with compiled(target) as second:
        found = second.fit(x, y, **call, checkpoints=Checkpoints(tmp_path / "kept", resume=True), log=log)
        assert [v.loss for v in found.validation] == [v.loss for v in history.validation][-len(found.validation) :]
        assert (found.best_epoch, found.stopped_early) == (history.best_epoch, history.stopped_early)
        assert_same(state(second), wanted)
    rows, others = (list(csv.DictReader(path.open())) for path in (log, tmp_path / "whole.csv"))
    assert [{**row, "seconds": 0} for row in rows] == [{**row, "seconds": 0} for row in others]
    assert len({row["learning_rate"] for row in rows}) > 1
    position = read_position(tmp_path / "kept")
    assert position.finished
    assert position.restored


def test_early_stopping_leaves_the_epochs_out_and_the_best_weights_are_restored(tmp_path):
    x, y = samples()
    with compiled() as session:
        history = session.fit(x, y, epochs=50, validation=HELD, patience=2, learning_rate=0.5, restore_best=True)
        costs = [v.loss for v in history.validation]
        assert history.stopped_early
        assert len(costs) < 50
        assert history.best_epoch == int(np.argmin(costs))
        assert len(costs) == history.best_epoch + 3
        kept = state(session)
    with compiled() as other:
        other.fit(x, y, epochs=history.best_epoch + 1, learning_rate=0.5)
        assert_same(kept, state(other))


def test_patience_counts_epochs_without_an_improvement_of_min_delta():
    rows = [(loss, 0.0) for loss in (1.0, 0.9, 0.89, 0.88, 0.95)]
    assert not Stopping(patience=2).stops(rows)
    assert Stopping(patience=2, min_delta=0.05).stops(rows[:4])
    assert Stopping(patience=2).best(rows) == 3
    assert Stopping(monitor="accuracy").best([(1, 0.2), (2, 0.5), (0, 0.5)]) == 1
    assert Stopping().best([(float("nan"), 0.1)]) is None


def test_metrics_are_those_of_their_definitions():
    scores, labels = np.array([[3.0, 2, 1], [1, 3, 2], [3, 1, 2], [0, 1, 2]]), np.array([0, 2, 2, 2])
    assert value_of("accuracy", "accuracy", scores, labels) == 0.5
    assert value_of("top_2", "top_2", scores, labels) == 1.0
    np.testing.assert_array_equal(value_of("c", "confusion", scores, labels), [[1, 0, 0], [0, 0, 0], [1, 1, 1]])
    np.testing.assert_array_equal(value_of("p", "per_class", scores, labels), [1, np.nan, 1 / 3])
    assert value_of("f1", "f1", scores, labels) == pytest.approx((2 / 3 + 0 + 2 / 4) / 3)
    assert value_of("mine", lambda scores, labels: scores.max(), scores, labels) == 3


def test_a_schedule_by_update_is_used_at_every_update_and_resumed_by_its_text(tmp_path):
    seen = []
    call = {"epochs": 3, "seed": 7, "learning_rate": LinearSchedule(0.1, 0.01, epochs=2)}
    with compiled() as session, pytest.raises(Ended):
        session.fit(*samples(), **call, callback=ended_at(7), checkpoints=Checkpoints(tmp_path / "kept", every=1e-9))
    with compiled() as session:
        session.fit(*samples(), **call, callback=seen.append, checkpoints=Checkpoints(tmp_path / "kept", resume=True))
        assert seen[0].update >= 6
        assert [p.learning_rate for p in seen] == [LinearSchedule(0.1, 0.01, updates=10)(p.update) for p in seen]
    with compiled() as session, pytest.raises(ResumeError, match=r"learning_rate linear:first=0\.1.*here 0\.1"):
        session.fit(*samples(), **call | {"learning_rate": 0.1}, checkpoints=Checkpoints(tmp_path / "kept", resume=True))


def test_an_accuracy_is_not_monitored_where_targets_are_no_classes():
    net = snnc.Sequential(4, snnc.Dense(2), snnc.LI())
    x, y = np.ones((4, 3, 4), np.float32), np.zeros((4, 2), np.float32)
    with snnc.compile(net, loss=snnc.losses.SquaredError("membrane", targets="values")) as session:
        with pytest.raises(TrainingOptionError, match="not one class per sample"):
            session.fit(x, y, validation=(x, y), monitor="accuracy")
        assert len(session.fit(x, y, validation=(x, y), monitor="loss").losses) == 1


def test_two_trainings_into_one_file_are_refused(tmp_path):
    kept = Checkpoints(tmp_path / "kept")

    def second(_):
        with compiled() as other, pytest.raises(FolderInUseError, match=r"SNNC-E417: the file .*kept"):
            other.fit(*samples(), checkpoints=kept)

    with compiled() as session:
        session.fit(*samples(), checkpoints=kept, on_epoch=second)
    assert [p.name for p in tmp_path.iterdir()] == ["kept"]


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"metrics": ["top_2"]}, MetricError),
        ({"validation": HELD, "metrics": ["best"]}, MetricError),
        ({"validation": HELD, "metrics": ["f1", "f1"]}, MetricError),
        ({"validation": HELD, "metrics": [lambda scores, labels: "many"]}, MetricError),
        ({"patience": 2}, TrainingOptionError),
        ({"best": "b"}, TrainingOptionError),
        ({"restore_best": True}, TrainingOptionError),
        ({"monitor": "accuracy"}, TrainingOptionError),
        ({"validation": HELD, "monitor": "speed"}, TrainingOptionError),
        ({"validation": HELD, "patience": 0}, TrainingOptionError),
        ({"validation": HELD, "min_delta": 0.1}, TrainingOptionError),
        ({"validation": HELD[0]}, TrainingOptionError),
        ({"validation": HELD, "restore_best": True, "checkpoints": Checkpoints("kept")}, TrainingOptionError),
        ({"learning_rate": Plateau(0.1)}, ScheduleError),
        ({"learning_rate": "fast"}, ScheduleError),
        ({"log": "missing/log.csv"}, LogError),
    ],
)
def test_what_has_no_effect_is_refused_with_a_code(tmp_path, monkeypatch, given, error):
    monkeypatch.chdir(tmp_path)
    with compiled() as session, pytest.raises(error, match="SNNC-E5"):
        session.fit(*samples(), **given)


class Batches:
    """A stream that does not say how many batches it has."""

    def __iter__(self):
        x, y = samples()
        return ((x[at : at + BATCH], y[at : at + BATCH]) for at in range(0, len(x), BATCH))


@pytest.mark.parametrize("data", [samples(), (Batches(),)], ids=["arrays", "stream"])
def test_tensorboard_has_every_update_once_although_the_training_was_interrupted(tmp_path, data):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    call = {"epochs": 3, "validation": HELD, "tensorboard": tmp_path / "tb"}
    with compiled() as session, pytest.raises(Ended):
        session.fit(*data, **call, callback=ended_at(8), checkpoints=Checkpoints(tmp_path / "kept", every="none"))
    with compiled() as session:
        session.fit(*data, **call, checkpoints=Checkpoints(tmp_path / "kept", resume=True))
    found = EventAccumulator(str(tmp_path / "tb")).Reload()
    assert [event.step for event in found.Scalars("training/loss")] == list(range(15))
    assert [event.step for event in found.Scalars("validation/accuracy")] == [4, 9, 14]


def test_names_of_metrics_are_refused_as_one_text():
    with pytest.raises(MetricError, match="give a list"):
        checked_metrics("f1")
