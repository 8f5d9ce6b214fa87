"""One gradient shared by all threads: the same bits for any number of threads, and the reference's numbers.

Networks are small, so every dense weight whose gradient a single operation computes is treated as large.
"""

import numpy as np
import pytest
from checkpoints import assert_checkpoints_change_the_order_of_sums_only
from cpu_projects import assert_same_training, data, heavy, opened, parts_of, wide
from indexed_nets import convolutional, sparse_recurrent
from nets import delayed, learnable, recurrent

from snnc.backends.cpu import operations
from snnc.backends.cpu.emit import emit_cpu
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import SGD
from snnc.compiler.lowering.lower import lower
from snnc.compiler.neurons.library import LI

STEPS, BATCH = 11, 12


@pytest.fixture(autouse=True)
def all_are_large(monkeypatch):
    monkeypatch.setattr(operations, "SHARED", 0)


def windowed(random):
    return wide(random, LI(0.9), delay=2)


def program_of(make, loss="ce_mean_membrane", **options):
    return lower(make(np.random.default_rng(3)), loss=parse_loss(loss), optimizer=SGD(1e-2), loss_output="y", **options)


def shared(program, folder):
    """Names of the parameters of which threads share the gradient."""
    source = (emit_cpu(program, folder / "project") / "network.cpp").read_text()
    return [name for name in program.parameters if f"{name}.shared = " in source]


@pytest.mark.representative("delayed")
@pytest.mark.parametrize("make", [recurrent, delayed, convolutional])
def test_any_number_of_threads_gives_the_same_bits(make, tmp_path):
    program = program_of(make, "ce_rate" if make is delayed else "mse_count:0.8,0.1")
    names = shared(program, tmp_path)
    assert names
    inputs, labels = data(program, STEPS, BATCH)
    found = []
    for threads in (1, 2, 3, 5):
        with opened(program, threads) as engine:
            engine.train_batch(inputs, labels, 0.0)
            found.append(engine.gradients())
    for name in names:
        assert found[0][name].any()
        for gradients in found[1:]:
            np.testing.assert_array_equal(gradients[name], found[0][name], err_msg=name)


@pytest.mark.representative("windowed-options4")
@pytest.mark.parametrize(
    ("make", "options"),
    [
        (recurrent, {}),
        (delayed, {"loss": "ce_rate"}),
        (delayed, {"truncate": 4}),
        (learnable, {"loss": "ce_max_membrane"}),
        (windowed, {"gradient_window": (-0.3, float("inf"))}),
        (sparse_recurrent, {}),
        (convolutional, {}),
    ],
)
def test_training_is_that_of_the_reference(make, options):
    program = program_of(make, **options)
    # Fewer samples than threads, and more steps than a block has.
    for steps, batch in ((STEPS, BATCH), (3, 2), (20, 40)):
        with opened(program, 3) as engine:
            assert_same_training(engine, program, 2, steps=steps, batch=batch)


def test_in_bfloat16_it_is_that_of_a_single_thread_that_shares_nothing(monkeypatch, tmp_path):
    program = program_of(recurrent)
    names, found = shared(program, tmp_path), []
    inputs, labels = data(program, STEPS, BATCH)
    for threads, large in ((3, 0), (1, 1 << 40)):
        monkeypatch.setattr(operations, "SHARED", large)
        with opened(program, threads, precision="bfloat16") as engine:
            engine.train_batch(inputs, labels, 0.0)
            found.append(engine.gradients())
    for name in names:
        np.testing.assert_array_equal(found[0][name], found[1][name], err_msg=name)


def test_checkpoints_change_no_bit():
    program = program_of(delayed)
    inputs, labels = data(program, STEPS, BATCH)
    with opened(program, 2) as engine:
        assert_checkpoints_change_the_order_of_sums_only(engine, inputs, labels, (0, 1, 3, 4, STEPS + 5), 0)


@pytest.mark.representative("heavy-2-11")
@pytest.mark.parametrize(("make", "threads", "batch"), [(recurrent, 2, 45), (delayed, 3, 8), (heavy, 2, 11)])
def test_large_weights_that_are_not_copied_between_checkpoints_change_no_bit(make, threads, batch, monkeypatch):
    monkeypatch.setattr(operations, "COPIED", 0)
    program = program_of(make)
    inputs, labels = data(program, STEPS, batch)
    with opened(program, threads) as engine:
        assert_checkpoints_change_the_order_of_sums_only(engine, inputs, labels, (0, 4), 0)
        assert engine.description["memory"]["omitted"]["copies"] > 0


def test_parts_of_an_update_are_summed_and_set_gradients_are_taken():
    program = program_of(learnable)
    inputs, labels = data(program, STEPS, BATCH)
    with opened(program, 3) as engine:
        engine.train_batch(inputs, labels, 0.0)
        wanted = engine.gradients()
        # The second part has fewer samples than there are threads.
        for bounds in ((5, 7), (1, 2)):
            engine.train_parts(iter(parts_of(inputs, labels, *bounds)), BATCH, 0.0)
            for name, gradient in engine.gradients().items():
                np.testing.assert_allclose(gradient, wanted[name], atol=1e-5 * np.abs(wanted[name]).max(), err_msg=name)
        before = engine.get_parameters()
        for name, gradient in wanted.items():
            engine.session.set(f"d_{name}", 2 * gradient)
        engine.change_parameters(0.5)
        for name, value in engine.get_parameters().items():
            if name in wanted:
                np.testing.assert_allclose(value, before[name] - wanted[name], atol=1e-6, err_msg=name)


def test_one_of_them_takes_the_memory_of_one_whatever_the_threads(monkeypatch):
    program = program_of(recurrent)
    with opened(program) as engine:
        one = engine.description["memory"]
    monkeypatch.setattr(operations, "SHARED", 1 << 40)
    with opened(program) as engine:
        several = engine.description["memory"]
    moved = one["fixed"] - several["fixed"]
    assert moved == several["thread"] - one["thread"] > 0
