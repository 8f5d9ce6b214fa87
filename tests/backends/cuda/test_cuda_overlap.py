"""Weight gradients that run in a second stream while a recurrent core runs backward: which, when, and that numbers stay the same."""

import json
from dataclasses import asdict

import numpy as np
import pytest
from cpu_projects import assert_same_training, data
from cuda_projects import SPLIT, opened, stacked

from snnc.backends.cuda import network
from snnc.backends.cuda.emit import emit_cuda
from snnc.backends.cuda.network import launches_of
from snnc.backends.cuda.schedule.overlap import BackwardCore, interleave
from snnc.backends.cuda.schedule.prediction import H100, predict, seconds_of
from snnc.compiler.losses.optimizers import SGD

LOG = "SNNC_HOST_STREAMS"


def during(program):
    return {one.of: one.during for one in launches_of(program) if one.way == "gradient" and one.kind == "product"}


def test_gradients_of_wide_layers_run_during_the_first_core_that_follows():
    assert during(stacked(40, 48, 36)) == {
        "hidden3_to_readout": "",
        "hidden2_to_hidden3": "hidden2",
        "hidden3_to_hidden3": "hidden2",
        "hidden1_to_hidden2": "hidden1",
        "hidden2_to_hidden2": "hidden1",
        "input_to_hidden1": "",
        "hidden1_to_hidden1": "",
    }
    assert during(stacked(40, -48))["hidden1_to_hidden2"] == "hidden1"
    assert during(stacked(40, 24))["hidden1_to_hidden2"] == ""


@pytest.mark.parametrize("layers", [(40,), (-40, -48), (1100, 48)], ids=["one layer", "no recurrence", "a core over memory"])
def test_without_a_later_core_in_clusters_the_program_has_one_stream(layers, tmp_path):
    program = stacked(*layers)
    assert set(during(program).values()) == {""}
    assert "beside" not in (emit_cuda(program, tmp_path / "project") / "network.cpp").read_text()


@pytest.mark.representative("0")
@pytest.mark.parametrize("segment", [0, 4])
def test_numbers_are_those_of_the_reference(segment):
    program = stacked(40, 48, optimizer=SGD(1e-2))
    with opened(program, 2, 8) as engine:
        engine.segment = segment
        assert_same_training(engine, program, updates=3, tolerance=SPLIT)


def test_the_second_stream_waits_for_complete_deltas_and_the_pass_for_its_end(tmp_path, monkeypatch):
    program, log = stacked(40, 48, optimizer=SGD(1e-2)), tmp_path / "streams.txt"
    x, labels = data(program, 9, 5)
    with opened(program, 2, 8) as engine:
        engine.train_batch(x, labels, 1e-2)
        monkeypatch.setenv(LOG, str(log))
        engine.train_batch(x, labels, 1e-2)
    asked = [tuple(line.rpartition(" ")[::2]) for line in log.read_text().splitlines()]
    (side,) = {stream for what, stream in asked if what == "launch"} - {"0"}
    mine = [(what, place) for place, (what, stream) in enumerate(asked) if stream == side]
    kernels = [place for what, place in mine if what == "launch"]
    begun, ended = (next(place for what, place in mine if what == name) for name in ("hold", "record"))
    assert begun < kernels[0] < kernels[-1] < ended
    assert len(kernels) >= 2
    # The mark comes before the core, which is started before the gradients.
    before = asked[:begun]
    mark = max(place for place, one in enumerate(before) if one == ("record", "0"))
    assert ("launch", "0") in asked[mark:begun]
    joined = asked.index(("hold", "0"), ended)
    assert ("launch", "0") in asked[joined:]


def test_statements_keep_their_order_and_those_beside_follow_their_core():
    cores = [BackwardCore("b", 1, frozenset()), BackwardCore("a", 4, frozenset({"c_b"}))]
    found = interleave(["0", "time b", "b", "sum", "time a", "a", "end"], cores, {"a": ["gradient"]})
    beside = ["beside.run(is_timed(), [&] {", "  gradient", "});"]
    assert found == ["0", "time b", "b", "sum", "beside.mark();", "time a", "a", *beside, "end"]


def test_a_prediction_counts_only_the_share_of_gradients_that_idle_multiprocessors_compute(tmp_path):
    program = stacked(1024, 1024, inputs=700)
    launches = launches_of(program)
    alone = [type(one)(**{**asdict(one), "during": ""}) for one in launches]
    few, many = (seconds_of(predict(alone, 250, batch), H100) - seconds_of(predict(launches, 250, batch), H100) for batch in (64, 1024))
    beside = sum(one.seconds for one in predict(launches, 250, 64) if one.launch.during)
    assert few == pytest.approx(beside, rel=1e-6)
    assert 150e-6 < few < 200e-6
    assert 0 < many < sum(one.seconds for one in predict(launches, 250, 1024) if one.launch.during)
    description = json.loads((emit_cuda(stacked(40, 48), tmp_path / "project") / "project.json").read_text())
    assert {one["during"] for one in description["launches"]} == {"", "hidden1"}


@pytest.mark.wide
def test_the_bits_are_those_of_a_program_with_one_stream(monkeypatch):
    program = stacked(40, 48)
    x, labels = data(program, 9, 5)
    found = []
    for overlaps in (network.overlapping, lambda storage, cores: {}):
        monkeypatch.setattr(network, "overlapping", overlaps)
        with opened(program, 2, 8) as engine:
            losses = [engine.train_batch(x, labels, 1e-2) for _ in range(3)]
            found.append((losses, engine.get_parameters()))
    assert found[0][0] == found[1][0]
    for name, value in found[0][1].items():
        np.testing.assert_array_equal(value, found[1][1][name])
