"""Predicted seconds of launches compared with kernel times on an H100, and estimates of a network."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from cuda_projects import program_of, stacked

from snnc.backends.cuda.emit import emit_cuda
from snnc.backends.cuda.network import launches_of
from snnc.backends.cuda.schedule.cores import core_seconds
from snnc.backends.cuda.schedule.launches import Launch, read_launches, rounded_up
from snnc.backends.cuda.schedule.prediction import H100, predict, predicted_step, seconds_of
from snnc.backends.cuda.schedule.teams import team_seconds
from snnc.cli import main as cli

# Measured on an H100 on 2026-11-23, us: forward, back, gradient of a convolution: channels, size, outputs, kernel, images.
DIGITS = Path(__file__).parents[3] / "examples/digits/digits.onnx"
CONVOLUTIONS = {
    "5x5 of 2 channels": ((2, 34, 12, 5, 2048), (222.4, 340.9, 165.9)),
    "5x5 of 12 channels": ((12, 15, 32, 5, 2048), (101.0, 173.1, 127.8)),
    "3x3 of 64 channels": ((64, 32, 64, 3, 512), (330.0, 408.6, 688.4)),
    "3x3, 64 to 128 channels": ((64, 16, 128, 3, 128), (56.0, 79.4, 106.3)),
    "3x3, 256 to 512 channels": ((256, 4, 512, 3, 512), (188.8, 359.7, 491.4)),
}


def convolution(way, channels, size, outputs, kernel):
    across = size - kernel + 1 if kernel == 5 else size
    bits, numbers = 4 * -(-channels * size**2 // 32), 4 * outputs * across**2
    if way == "backward":
        row, depth, width, positions = 4 * channels * size**2 + numbers, outputs * kernel**2, rounded_up(channels, 16), size**2
    else:
        row, depth, width, positions = bits + numbers, channels * kernel**2, rounded_up(outputs, 32), across**2
    parts = 3 if way == "backward" else 2
    return Launch("convolution", way, "", row, 0, rounded_up(depth, 16), width, positions, parts)


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions_are_predicted_within_half_of_what_they_took(name):
    (*sizes, images), measured = CONVOLUTIONS[name]
    for way, microseconds in zip(("forward", "backward", "gradient"), measured, strict=True):
        (found,) = predict([convolution(way, *sizes)], 1, images)
        assert microseconds / 1.5 <= 1e6 * found.seconds <= 1.5 * microseconds, way


@pytest.mark.parametrize(("batch", "back", "microseconds"), [(64, False, 52.5), (64, True, 71.1), (1024, False, 140), (1024, True, 213)])
def test_a_core_is_predicted_as_the_same_structure_took(batch, back, microseconds):
    """256 neurons, 100 steps: clusters of 8 blocks and 8 samples, or of 2 blocks and 16 samples."""
    assert 1e6 * core_seconds(256, batch, 100, back=back, parts=2) == pytest.approx(microseconds, rel=0.2)


@pytest.mark.parametrize(
    ("work", "steps", "microseconds"),
    [
        ({"neurons": 276, "listed": 249_856}, 100, 475),
        ({"neurons": 276, "weights": 70_656, "depth": 276}, 100, 796),
        ({"neurons": 2068, "listed": 3_883_008}, 250, 3_550),
        ({"neurons": 2068, "weights": 3_166_208, "depth": 2048}, 250, 21_540),
    ],
    ids=["W1 forward", "W1 back", "W2 forward", "W2 back"],
)
def test_feedbacks_are_predicted_within_half_of_what_they_took(work, steps, microseconds):
    """Measured on an H100 on 2026-11-23, when networks ran as one feedback: 64 samples, 5 % of the inputs spike."""
    assert microseconds / 1.5 <= 1e6 * team_seconds(Launch("feedback", "forward", "all", levels=1, **work), 64, steps) <= 1.5 * microseconds


def test_launches_of_a_project_are_those_of_its_program(tmp_path):
    description = json.loads((emit_cuda(program_of("recurrent"), tmp_path / "project") / "project.json").read_text())
    launches = [Launch(**one) for one in description["launches"]]
    kinds = [(one.kind, one.way) for one in launches]
    assert {("core", "forward"), ("core", "backward"), ("product", "gradient"), ("update", "once")} <= set(kinds)
    assert kinds.index(("core", "forward")) < kinds.index(("core", "backward")) < kinds.index(("update", "once"))
    few, many = (predict(launches, 100, batch) for batch in (8, 8192))
    assert 0 < seconds_of(few, H100) < seconds_of(many, H100)


def test_weights_are_split_in_one_launch_that_takes_as_long_as_its_slowest_block():
    """On an H100: 704 x 32 weights per block at 2.5 billion per second before six blocks shared 32 columns, 4,096 since."""
    weights = [launch for launch in launches_of(stacked(256, inputs=700)) if launch.kind == "prepare"]
    (found,) = predict(weights, 100, 64)
    ranges = 4 * 700 * 32 / (23 * 1.755e9)
    assert found.seconds == pytest.approx(2.5e-6 + ranges + 4096 / 2.5e9, rel=1e-3)


def test_biases_and_cleared_rows_are_part_of_a_prediction():
    kinds = [(one.kind, one.of) for one in launches_of(stacked(256, inputs=700))]
    assert kinds.count(("sum", "biases")) == 1
    assert sum(kind == "clear" for kind, _ in kinds) == 2
    (sums,) = (one for one in launches_of(stacked(256, inputs=700)) if one.kind == "sum")
    assert sums.row_bytes == 4 * (256 + 5)


@pytest.mark.parametrize(
    "change",
    [{"kind": "other"}, {"way": []}, {"of": 1}, {"neurons": -1}, {"row_bytes": 1.5}, {"depth": True}, {"width": 2**60}, {"more": 1}],
    ids=str,
)
def test_launches_are_read_back_with_suspicion(change):
    good = [asdict(Launch("core", "forward", "hidden", neurons=256, parts=2))]
    assert read_launches(json.loads(json.dumps(good))) == [Launch("core", "forward", "hidden", neurons=256, parts=2)]
    assert read_launches([good[0] | change]) is None
    assert all(read_launches(wrong) is None for wrong in (None, {}, [], [1], [{}]))


def test_a_project_of_an_older_version_keeps_its_prediction():
    """Before gradients ran beside cores, launches had no field that names the core."""
    launches = [
        Launch("core", "backward", "hidden", neurons=1024, parts=2),
        Launch("product", "gradient", "first", 1, 1, 700, 1024, parts=2, during="hidden"),
    ]
    old = [{name: value for name, value in asdict(one).items() if name != "during"} for one in launches]
    now, before = (predicted_step({"launches": given}, 250, 64) for given in ([asdict(one) for one in launches], old))
    assert before["seconds"] > now["seconds"] > 0
    assert before["kernels"] == now["kernels"]


def test_an_estimate_says_where_the_time_goes_and_that_it_is_predicted(capsys):
    asked = ["compile", str(DIGITS), "--target", "cuda", "--loss", "ce_count", "--optimizer", "adam", "--estimate-only"]
    assert cli.run_command([*asked, "--batch", "64"]) == 0
    memory, time, *kernels = capsys.readouterr().out.splitlines()
    assert memory.startswith("memory ")
    assert "predicted for NVIDIA H100" in time
    assert len(kernels) > 5
    assert cli.run_command([*asked, "--batch", "64", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["seconds"] > 0
    assert len(data["kernels"]) == len(kernels)
    assert all(one["bytes"] > 0 or one["kind"] == "clear" for one in data["kernels"])
