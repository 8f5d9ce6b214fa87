"""Training steps that keep histories between checkpoints only: the same numbers, in less memory."""

import numpy as np
import pytest
from checkpoints import assert_checkpoints_change_the_order_of_sums_only
from cpu_projects import data, opened
from hypothesis import given
from hypothesis import strategies as st
from indexed_nets import choosing, convolutional, sparse_recurrent
from nets import delayed, learnable, of_model, recurrent

from snnc.backends.cpu.memory import predicted_bytes, segment_for
from snnc.backends.errors import MemoryNeededError
from snnc.compiler.losses import parse_loss
from snnc.compiler.lower import lower
from snnc.compiler.neurons import SLSTM
from snnc.compiler.optimizers import SGD

STEPS, BATCH = 11, 5


def slstm(random):
    return of_model(random, SLSTM(0.1))


def program_of(make, loss="ce_mean_membrane"):
    output = {} if make is slstm else {"loss_output": "y"}
    return lower(make(np.random.default_rng(3)), loss=parse_loss(loss), optimizer=SGD(1e-2), **output)


@pytest.mark.parametrize("make", [recurrent, delayed, learnable, sparse_recurrent, convolutional, choosing, slstm])
def test_checkpoints_change_the_order_of_sums_only(make):
    program = program_of(make, "ce_max_membrane" if make is recurrent else "ce_mean_membrane")
    inputs, labels = data(program, STEPS, BATCH)
    with opened(program) as engine:
        assert_checkpoints_change_the_order_of_sums_only(engine, inputs, labels, (0, 1, 3, 4, STEPS + 5), 1e-6)


@given(
    history=st.integers(0, 5000),
    checkpoint=st.integers(0, 5000),
    steps=st.integers(1, 60),
    batch=st.integers(1, 9),
    spare=st.integers(0, 10**6),
)
def test_the_longest_segment_that_fits_is_taken(history, checkpoint, steps, batch, spare):
    memory = {"fixed": 1000, "history": history, "checkpoint": checkpoint, "listed": 10, "record": 4}
    description = {"name": "drawn", "memory": memory}
    needed = {n: predicted_bytes(description, steps, batch, n) for n in range(1, steps + 1)}
    most = min(needed.values()) + spare
    chosen = segment_for(description, steps, batch, most)
    assert needed[chosen] <= most
    assert all(needed[n] > most for n in range(chosen + 1, steps + 1))
    with pytest.raises(MemoryNeededError, match="smaller batch"):
        segment_for(description, steps, batch, min(needed.values()) - 1)


def test_a_limit_of_memory_sets_checkpoints_and_too_small_a_limit_is_refused():
    program = program_of(recurrent)
    with opened(program) as engine:
        whole = predicted_bytes(engine.description, STEPS, BATCH, STEPS)
    inputs, labels = data(program, STEPS, BATCH)
    with opened(program, memory=whole - 1) as engine:
        engine.train_batch(inputs, labels, 1e-2)
        assert 0 < engine.session.get("segment")[0] < STEPS
    with opened(program, memory=whole) as engine:
        engine.train_batch(inputs, labels, 1e-2)
        assert engine.session.get("segment")[0] == 0
    with opened(program, memory=1000) as engine, pytest.raises(MemoryNeededError, match="allowed"):
        engine.train_batch(inputs, labels, 1e-2)
