"""Recurrent cores: populations whose weights stay on the chip for all steps, run on the CPU and compared with float64."""

import json
import os
import subprocess
from functools import cache
from pathlib import Path

import pytest
from cuda_checks import built_check
from wide import examples, sampled

from snnc.backends.cuda.schedule.cores import CoreShape, core_seconds, shape_seconds

HERE = Path(__file__).parent

OWN = "typename ShapesOf<Way>::All"
"""The shapes that a population gets."""
PAIRS = "ShapeList<Float32Shape<Way, 2, 8>, MmaShape<Way, 4, 1, 8>, MmaShape<Way, 2, 2, 8>>"
"""Small clusters, each of which has all that large ones have."""
MEMORY = "ShapeList<MmaShape<Way, 4, 1, 8, Link::MEMORY>, MmaShape<Way, 2, 2, 16, Link::MEMORY>>"
"""Small teams whose blocks reach each other over memory: one at a time, and two."""


OLD_DEVICE = "ShapeList<MmaShape<Way, 4, 1, 8>, MmaShape<Way, 4, 1, 8, Link::OLD_DEVICE>>"
"""A cluster, and a team for devices without clusters."""


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    """Compile the check for a size, a delay, shapes, a number of halves, and more flags."""

    @cache
    def build(size, delay=1, shapes=OWN, halves=2, flags=()):
        defined = (f"-DTEST_SIZE={size}", f"-DTEST_DELAY={delay}", f"-DTEST_SHAPES={shapes}", f"-DTEST_HALVES={halves}")
        return built_check(tmp_path_factory.mktemp("recurrent") / "check", [HERE / "recurrent_check.cpp"], [*flags, *defined, f"-I{HERE}"])

    return build


def found(program, shape, batch, *segments, order="", blocks=4):
    """Run the check and return what it prints."""
    words = [str(program), *map(str, (shape, batch, *segments))]
    given = os.environ | {"SNNC_HOST_ORDER": order, "SNNC_HOST_BLOCKS": str(blocks)}
    return json.loads(subprocess.run(words, check=True, capture_output=True, text=True, env=given).stdout)


def agrees(said):
    """Whether a run is as close to float64 as float32 is."""
    return said["wrong"] == 0 and said["fired"] > 0 and said["v"] < 1e-6 and said["deltas"] < 1e-5


@pytest.mark.wide
@pytest.mark.parametrize("order", ["", "backwards"])
@pytest.mark.parametrize("delay", [1, 2])
@pytest.mark.parametrize("shape", [0, 1])
def test_a_block_alone_agrees_with_float64(program, shape, delay, order):
    for batch, segments in ((1, (1,)), (3, (2,)), (9, (7,)), (9, (3, 1, 3)), (64, (2,))):
        assert agrees(found(program(20, delay), shape, batch, *segments, order=order))


@pytest.mark.representative("0-1-")
@pytest.mark.parametrize("order", ["", "backwards"])
@pytest.mark.parametrize("delay", [1, 2])
@pytest.mark.parametrize("shape", [0, 1, 2])
def test_clusters_agree_with_float64(program, shape, delay, order):
    for batch, segments in ((1, (1,)), (9, (7,)), (9, (3, 1, 3))):
        assert agrees(found(program(100, delay, PAIRS), shape, batch, *segments, order=order))


@pytest.mark.representative("0-1-")
@pytest.mark.parametrize("order", ["", "backwards"])
@pytest.mark.parametrize("delay", [1, 2])
@pytest.mark.parametrize("shape", [0, 1])
def test_teams_over_memory_agree_with_float64(program, shape, delay, order):
    """A team takes several groups of samples, one after the other."""
    for batch, segments in ((1, (1,)), (9, (7,)), (35, (3, 1, 3))):
        assert agrees(found(program(100, delay, MEMORY), shape, batch, *segments, order=order))


@pytest.mark.representative("0")
@pytest.mark.parametrize("shape", [0, 1])
def test_the_bits_are_the_same_for_any_number_of_teams_and_any_order(program, shape):
    every = [(order, blocks) for order in ("", "backwards") for blocks in (4, 8, 13)]
    ways = examples([("", 4), ("backwards", 8), ("", 13)], every)
    runs = [found(program(100, 1, MEMORY), shape, examples(19, 35), 3, 1, 3, order=order, blocks=blocks) for order, blocks in ways]
    assert all(map(agrees, runs))
    assert len({said["bits"] for said in runs}) == 1


def test_the_bits_of_clusters_are_the_same_in_any_order(program):
    for shape in (0, 1, 2):
        one, other = (found(program(100, 1, PAIRS), shape, 9, 3, 1, 3, order=order) for order in ("", "backwards"))
        assert agrees(one)
        assert agrees(other)
        assert one["bits"] == other["bits"]


@pytest.mark.representative("backwards")
@pytest.mark.parametrize("order", ["", "backwards"])
def test_devices_without_clusters_run_teams_over_memory(program, order):
    old = program(100, 1, OLD_DEVICE, 2, ("-DSNNC_WITHOUT_CLUSTERS",))
    said = found(old, -1, 9, 3, 1, 3, order=order)
    assert agrees(said)
    assert {said[way] for way in ("forward", "back")} == {"tensor cores, teams of 4 blocks, 8 samples each"}
    assert subprocess.run([str(old), "0", "9"], check=False).returncode == 2


@pytest.mark.wide
def test_three_hundred_neurons_have_kernels_for_devices_without_clusters(program):
    said = found(program(300, 1, OWN, 2, ("-DSNNC_WITHOUT_CLUSTERS",)), -1, 3, 2, blocks=10)
    assert agrees(said)
    assert "teams of 10 blocks" in said["forward"]


@pytest.mark.wide
@pytest.mark.parametrize(("size", "shape"), [(256, 0), (256, 1), *sampled([(100, 1), (300, 0)], 2)])
def test_shapes_of_a_size_agree_with_float64(program, size, shape):
    assert agrees(found(program(size), shape, 3, 2, 2))


@pytest.mark.wide
@pytest.mark.parametrize("shape", sampled([0, 1], 2))
def test_clusters_of_sixteen_blocks_agree_with_float64(program, shape):
    """Where weights leave no room for two slots of the exchange, blocks say when they have read."""
    assert agrees(found(program(700), shape, 2, 3))


@pytest.mark.wide
def test_one_half_of_16_bits_is_as_exact_as_it_is(program):
    """Weights of float16 forward, weights and deltas of bfloat16 back."""
    said = found(program(100, 1, PAIRS, 1), 1, 9, 4)
    assert said["wrong"] <= 2
    assert 1e-6 < said["v"] < 1e-2
    assert 1e-4 < said["deltas"] < 2e-2


@pytest.mark.wide
def test_few_samples_share_a_cluster_and_many_take_blocks_of_their_own(program):
    few, many = (found(program(256), -1, batch) for batch in (64, 1024))
    assert [few[way] for way in ("forward", "back")] == ["tensor cores, clusters of 8 blocks, 8 samples each"] * 2
    assert [many[way] for way in ("forward", "back")] == ["tensor cores, single blocks, 8 samples each"] * 2


@pytest.mark.wide
@pytest.mark.parametrize(
    ("shapes", "batch", "forward", "back"),
    [
        ("MmaShape<Way, 8, 1, 8>", 64, 52.5, 71.1),
        ("Float32Shape<Way, 2, 16>", 64, 59.6, 78.0),
        ("MmaShape<Way, 2, 2, 16>", 1024, 140.0, 213.0),
    ],
)
def test_seconds_are_predicted_as_a_like_kernel_took_them_on_an_h100(program, shapes, batch, forward, back):
    said = found(program(256, 1, f"ShapeList<{shapes}>"), 0, batch)
    assert said["forward_seconds"] == pytest.approx(forward * 1e-6, rel=0.2)
    assert said["back_seconds"] == pytest.approx(back * 1e-6, rel=0.2)


@pytest.mark.wide
@pytest.mark.parametrize("size", [20, 100, 256, 300, 700])
def test_estimates_predict_a_core_as_the_program_does_that_chooses_it(program, size):
    for batch in (1, 9, 64, 1024):
        said = found(program(size), -1, batch)
        for way, back in (("forward_seconds", False), ("back_seconds", True)):
            assert core_seconds(size, batch, 100, back=back, parts=2) == pytest.approx(said[way], rel=0.03)


@pytest.mark.wide
@pytest.mark.parametrize("number", [0, 1])
def test_estimates_predict_a_team_over_memory_as_the_program_does(program, number):
    shape = (CoreShape(4, 1, 8, over_memory=True), CoreShape(2, 2, 16, over_memory=True))[number]
    for batch in (1, 64, 1024):
        said = found(program(100, 1, MEMORY), number, batch)
        for way, back in (("forward_seconds", False), ("back_seconds", True)):
            assert shape_seconds(shape, 100, batch, 100, back=back, parts=2) == pytest.approx(said[way], rel=0.03)


@pytest.mark.wide
def test_a_population_that_finds_no_room_is_left_to_other_kernels(program):
    assert subprocess.run([str(program(1100)), "-1", "8"], check=False).returncode == 2
