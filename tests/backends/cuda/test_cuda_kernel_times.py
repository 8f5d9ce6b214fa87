"""Times of kernels: in a check on the CPU, the host's clock measures them."""

import time

import numpy as np
import pytest
from cpu_projects import data
from cuda_projects import opened, program_of

from snnc.backends.cuda.network import launches_of

STEPS, BATCH = 6, 3


@pytest.mark.representative("recurrent")
@pytest.mark.parametrize("name", ["recurrent", "convolutional"])
def test_every_planned_kernel_is_timed_but_those_before_the_passes(name):
    program = program_of(name)
    inputs, target = data(program, STEPS, BATCH)
    planned = launches_of(program)
    with opened(program) as engine:
        engine.train_batch(inputs, target, 1e-2)
        assert engine.kernel_times() is None
        engine.time_kernels()
        start = time.perf_counter()
        for _ in range(2):
            engine.train_batch(inputs, target, 1e-2)
        whole = time.perf_counter() - start
        found = engine.kernel_times()
    assert (found["device"], found["updates"], found["steps"], found["batch"]) == ("host check", 2, STEPS, BATCH)
    assert len(found["us"]) == len(planned)
    timed = {number for number, us in enumerate(found["us"]) if us is not None}
    assert {planned[number].kind for number in range(len(planned)) if number not in timed} <= {"pack", "clear", "prepare"}
    measured = [found["us"][number] for number in sorted(timed)]
    assert min(measured) > 0
    assert 2e-6 * sum(measured) < whole


def test_the_kernel_that_takes_longest_is_found():
    """Fibers meet at several barriers of a recurrent core in each step, and at none of the loss."""
    program = program_of("recurrent")
    inputs, target = data(program, 20, BATCH)
    with opened(program) as engine:
        engine.time_kernels()
        engine.train_batch(inputs, target, 1e-2)
        us = dict(zip(((one.kind, one.way) for one in launches_of(program)), engine.kernel_times()["us"], strict=True))
    assert us["core", "forward"] > us["loss", "once"]


def test_timing_does_not_change_results():
    program = program_of("recurrent")
    inputs, target = data(program, STEPS, BATCH)
    results = []
    for timed in (False, True):
        with opened(program) as engine:
            engine.session.set("segment", np.array([4], np.int32))
            if timed:
                engine.time_kernels()
            engine.train_batch(inputs, target, 1e-2)
            results.append(engine.get_parameters())
    for name, value in results[0].items():
        np.testing.assert_array_equal(results[1][name], value)
