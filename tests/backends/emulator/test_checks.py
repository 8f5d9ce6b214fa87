"""Faults that the emulator finds when its checks are enabled; none are reported in correct programs."""

import pytest

BOUNDS, UNDEFINED = {"SNNC_CHECK_BOUNDS": "1"}, {"SNNC_CHECK_UNDEFINED": "1"}

FAULTS = {
    "beyond": (BOUNDS, ["application_runtime_error", "field 'out'", "(Overrun)", "'work'", "beyond its end", "of 16"]),
    "farBeyond": (BOUNDS, ["application_runtime_error", "field 'out'", "beyond its end"]),
    "before": (BOUNDS, ["application_runtime_error", "field 'out'", "(Underrun)", "before its begin"]),
    "input": (BOUNDS, ["application_runtime_error", "field 'in'", "(WriteInput)", "input and was written"]),
    "undefined": (UNDEFINED, ["application_runtime_error", "field 'in'", "(Overrun)", "a[0:1]", "WriteUndef"]),
    "undefinedPart": (UNDEFINED, ["application_runtime_error", "a[7:8]"]),
    "undefinedCopy": (UNDEFINED, ["application_runtime_error", "a[0:1]"]),
    "undefinedPrint": (UNDEFINED, ["application_runtime_error", "'a' reads a[0:1]"]),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_finds_the_fault_and_names_the_field(cases, fault):
    flags, parts = FAULTS[fault]
    text = cases.run("checks", fault, **flags)
    for part in parts:
        assert part in text
    if flags is UNDEFINED:
        assert cases.run("checks", fault).endswith("ran\n"), "only for the asking"


@pytest.mark.parametrize("program", ["inside", "redefined"])
def test_programs_without_fault_run_with_every_check(cases, program):
    assert cases.run("checks", program, **BOUNDS, **UNDEFINED, SNNC_CHECK_WORKERS="1") == "ran\n"


def test_too_much_on_a_tile_is_an_error_unless_it_is_allowed(cases):
    assert cases.run("checks", "memory").startswith("poplar::graph_memory_allocation_error: out of memory on tile 1")
    assert cases.run("checks", "memory", SNNC_LENIENT_MEMORY="1") == "ran\n"
    assert cases.run("checks", "memory", ALLOW="1") == "ran\n"


def test_supervisor_vertices_count_cycles_of_the_tile_and_long_has_32_bits(cases):
    assert cases.run("checks", "supervisor").split() == ["4", "4", "4", "50"]


def test_an_error_program_ends_the_run_with_its_message_and_tensor(cases):
    assert cases.run("checks", "error") == "poplar::application_runtime_error: it went wrong: [0.0000000 0.0000000]\n\n"


def test_callbacks_are_asked_ahead_and_what_was_not_available_is_fetched(cases):
    calls, values = cases.run("checks", "prefetch").splitlines()
    # Values count the calls; the third prefetch has nothing, so its value is lost.
    assert calls.split() == [
        "fetch", "complete", "prefetch", "complete", "prefetch", "complete", "prefetch", "fetch", "complete", "prefetch",
    ]  # fmt: skip
    assert values == "0 1 2 4 0 0 0 0"


def test_a_request_ahead_may_wait_for_what_the_program_does_meanwhile(cases):
    assert cases.run("checks", "prefetchOnThread").split() == ["1", "11", "21"]


@pytest.mark.parametrize(
    ("mode", "workers", "here"),
    [("singleThread", "2", 1), ("collaborative", "0", 1), ("collaborative", "auto", 0), ("dedicated", "1", 0)],
)
def test_requests_ahead_are_made_on_threads_only_if_there_are_some(cases, mode, workers, here):
    assert cases.run("checks", "threadOfRequests", MODE=mode, WORKERS=workers) == f"here {here}\n"
