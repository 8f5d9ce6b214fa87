"""Programs compute the specified results."""

import os

import numpy as np
import pytest


def numbers(text):
    return [[float(x) for x in line.split()] for line in text.splitlines()]


def test_vectors_are_added_over_tiles(cases):
    assert numbers(cases.run("programs", "vectorAdd")) == [[100 + 2 * i for i in range(20)]]


def test_a_matrix_times_a_vector_is_that_of_numpy(cases):
    expected = np.arange(24).reshape(6, 4) @ np.arange(1, 5)
    assert numbers(cases.run("programs", "matvec")) == [expected.tolist()]


def test_half_rounds_as_ieee_binary16(cases):
    a = np.float16([0.1, 2048, -3])
    assert np.float16(numbers(cases.run("programs", "halves"))[0]).tolist() == (a + a).tolist()


def test_control_programs_run_their_bodies_as_often_as_they_say(cases):
    results = cases.run("programs", "control").split()
    assert results == ["12/0", "4/5", "10/0", "1/0", "1/0", "3/0", "100/0", "4/0", "1/0", "0/1", "0/0", "1/0"]


def test_streams_go_round_their_buffers_and_callbacks_are_called(cases):
    lines = numbers(cases.run("programs", "streams"))
    assert lines == [[10, 1, 30, 3, 60, 6, 70, 7, 90, 9], [2, -2]]


def test_rows_of_remote_buffers_go_to_tiles_and_back(cases):
    turned, row, both, last = numbers(cases.run("programs", "remotes"))
    assert turned == [0, 1, 0, 0, 2, 0, 0, 3, 0, 0, 4, 0]
    assert row == [4, 3, 2, 1]
    assert both == [9, 8, 7, 6, 1, 2, 3, 4]
    assert last == [0, 9, 0, 0, 8, 0, 0, 7, 0, 0, 6, 0], "without an offset the first row is copied"


def test_fields_of_all_kinds_are_connected_and_members_persist_until_loaded_again(cases):
    sums, rows, runs, picked, again = numbers(cases.run("programs", "fields"))
    assert sums == [6, 22, 38]
    assert rows == [0.5, 0.25 + 2 + 3 + 6 + 7 + 10 + 11]
    assert (runs, picked, again) == ([6], [-9], [3])


def test_rows_that_are_assigned_as_a_whole_are_copied_up_to_the_length_of_the_output(cases):
    assert numbers(cases.run("programs", "rows")) == [[1, 2, 5, 6, 9, 10]]


def test_initial_values_constants_and_copies_inside_a_variable(cases):
    t, out, copy = numbers(cases.run("programs", "values"))
    assert t == [3, 1, 1, 3]
    assert out == [11, 23]
    assert copy == [1, 3, 2, 4]


def test_print_tensor_writes_titles_decimals_rows_and_summaries(cases):
    lines = cases.run("programs", "printing").splitlines()
    assert lines[:7] == [
        "v2: [7.0000000 6.0000000 4.5000000 2.5000000]", "v4-1: [10 11 12]", "m: [", "  [10 11 12]", "  [20 21 22]", "]",
        "big: [0 0 0 ... 0 0 0]",
    ]  # fmt: skip
    assert lines[7:] == ["one: 1", "wide: [" + " ".join("0" * 30) + "]"]


def test_results_and_cycles_do_not_depend_on_the_number_of_threads(cases):
    runs = {
        cases.run("programs", "threads", SNNC_THREADS=str(n), SNNC_PARALLEL_MICROSECONDS="0")
        for n in (1, 2, 3)
    }  # fmt: skip
    assert len(runs) == 1


def test_workers_of_a_multi_vertex_can_be_kept_apart(cases):
    assert numbers(cases.run("programs", "workers")) == [[1, 1, 1, 1, 1, 1]], "one after the other they see what was written"
    text = cases.run("programs", "workers", SNNC_CHECK_WORKERS="1")
    assert text.startswith("poplar::application_runtime_error: a worker sees what another one writes: byte 4 of field 'data'")


@pytest.mark.skipif("SNNC_TEST_SANITIZER" in os.environ, reason="sanitizers count allocations of their own")
def test_a_run_takes_no_memory(cases):
    assert cases.run("programs", "allocations") == "0 1\n"


def test_the_summary_names_steps_memory_and_totals(cases):
    text = cases.run("programs", "summary")
    for part in ("variables", "exchange code", "execute one", "total:", "estimated"):
        assert part in text
    assert text.splitlines()[-1] == "0"


def test_machines_have_their_published_sizes(cases):
    assert cases.run("programs", "machines").splitlines() == [
        "1216 262144 1600 6", "1472 638976 1330 6", "1472 638976 1850 6", "1 5888", "1 1",
    ]  # fmt: skip
