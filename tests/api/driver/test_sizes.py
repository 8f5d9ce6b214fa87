"""Numbers of steps, samples and neurons that exceed any memory are refused before any work, with the numbers."""

import numpy as np
import pytest

import snnc
from snnc.backends.runtime.errors import StepsError
from snnc.compiler.errors import SnncError, TooLargeError
from snnc.compiler.ir.arrays.sizes import check_memory
from snnc.compiler.tiles import misfit_errors
from snnc.compiler.tiles.errors import OutputsTooBigError, TooBigError
from snnc.compiler.tiles.mapped.network import describe
from snnc.compiler.tiles.schedule.recompute import MAX_LENGTHS, segment_lengths
from snnc.compiler.tiles.schedule.schedule import make_schedule
from snnc.driver.lowering import lower_graph
from snnc.frontends.dsl.errors import ConnectionShapeError, SparseMatrixError
from snnc.frontends.onnx.writer.errors import HiddenTooLargeError
from snnc.options.compile_options import options

TRAINING = {"loss": "ce_mean_membrane", "optimizer": "adam"}


def net(neurons=16, connection=None):
    made = snnc.Network("net")
    hidden = made.population(neurons, snnc.LIF(), name="hidden")
    made.connect(made.input(8, name="x"), hidden, connection or snnc.Dense())
    readout = made.population(3, snnc.LI(), name="readout")
    made.connect(hidden, readout, snnc.Dense())
    made.output(readout, name="y")
    return made


@pytest.mark.parametrize("target", ["gc200", "pod16"])
@pytest.mark.parametrize("training", [{}, TRAINING], ids=["inference", "training"])
@pytest.mark.parametrize(("steps", "batch"), [(10**7, 1), (10**9, 1), (10**9, 10**9), (100, 10**10)])
def test_a_machine_refuses_sequences_whose_outputs_it_cannot_hold(target, training, steps, batch):
    with pytest.raises(OutputsTooBigError, match="SNNC-E263") as refused:
        snnc.estimate(net(), target, steps=steps, batch=batch, **training)
    assert f"{steps:,} steps" in str(refused.value)
    assert refused.value.needed > refused.value.available > 0


def test_the_most_steps_that_the_message_names_can_be_planned(monkeypatch):
    monkeypatch.setattr(misfit_errors, "find_remedies", lambda *_: ())  # what would help is not looked for
    with pytest.raises(OutputsTooBigError, match=r"At most 159,744 steps"):
        snnc.estimate(net(), "gc200", steps=10**7, batch=1)
    with pytest.raises(TooBigError) as refused:
        snnc.estimate(net(), "gc200", steps=159_745, batch=1)
    assert not isinstance(refused.value, OutputsTooBigError)
    assert snnc.estimate(net(), "gc200", steps=150_000, batch=1).plan.cycles > 0


def test_points_of_an_exploration_are_refused_one_by_one():
    points = snnc.explore(net(), targets=["gc200"], steps=10**9)
    assert points
    assert all(p.code == "SNNC-E263" for p in points)


def test_long_sequences_try_no_more_lengths_of_segments_than_short_ones():
    program = lower_graph(
        net().graph(), options("gc200", steps=10**9, batch=1, loss="ce_mean_membrane", optimizer="adam", surrogate="fast_sigmoid:25")
    ).program
    network = describe(program, True)
    schedule = make_schedule(network)
    found = segment_lengths(network, schedule, 10**9)
    assert 1 < len(found) <= MAX_LENGTHS
    assert found == tuple(sorted(found, reverse=True))


@pytest.mark.parametrize("asked", [{"steps": 10**7}, {"steps": 10**9}, {"samples": 10**8}])
def test_verify_counts_values_before_it_draws_any(asked, tmp_path):
    snnc.write_onnx(net().graph(), tmp_path / "net.onnx")
    for model in (net(), tmp_path / "net.onnx"):
        with pytest.raises(HiddenTooLargeError, match="SNNC-E244") as refused:
            snnc.verify(model, **asked)
        assert f"{next(iter(asked.values())):,}" in str(refused.value)


def test_steps_of_a_target_that_takes_any_sequence_cost_nothing_to_compile():
    with snnc.compile(net(), steps=10**9, batch=10**9) as session, pytest.raises(StepsError, match="1000000000"):
        session.run({"x": np.zeros((5, 2, 8), np.float32)})


@pytest.mark.parametrize(
    ("neurons", "connection", "error"),
    [
        (10**9, snnc.Dense(), ConnectionShapeError),
        (10**10, snnc.Dense(), TooLargeError),
        (10**9, snnc.Sparse(fan_in=2), SparseMatrixError),
        (10**9, snnc.Sparse(density=1e-9), SparseMatrixError),
    ],
)
def test_populations_whose_weights_nobody_can_draw_are_refused(neurons, connection, error):
    with pytest.raises(error, match=f"{neurons:,}|{neurons}"):
        net(neurons, connection)


def test_arrays_larger_than_the_memory_are_refused():
    with pytest.raises(TooLargeError, match=r"1,000,000,000,000 numbers, which need 11,175\.9 GiB"):
        check_memory(10**12, "an array")
    check_memory(1000, "an array")
    assert issubclass(TooLargeError, SnncError)
