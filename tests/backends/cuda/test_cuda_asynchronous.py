"""Asynchronous work in the check on the CPU: kernels that do not wait for it correctly give wrong results if it is late."""

import os
import subprocess
from pathlib import Path

import pytest
from cuda_checks import built_check

FAULTS = {
    "copies": "right",
    "copies: all but the last group": "right",
    "copies: all but the last two groups": "wrong",
    "copies: no wait": "wrong",
    "products": "right",
    "products: no wait": "wrong",
    "products: no group": "wrong",
    "products: factors overwritten": "wrong",
    "words": "right",
    "words: no wait": "words are sent to a block that has ended",
    "words: a phase is not waited for": "words are sent to a block that has ended",
    "words: a phase that never ends": "threads of a kernel wait for threads that have ended",
}
"""What a kernel gives if asynchronous work is as late as possible."""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    source = Path(__file__).with_name("asynchronous_check.cpp")
    return built_check(tmp_path_factory.mktemp("asynchronous") / "check", [source], ["-O0"])


def said(program, case, order):
    given = os.environ | {"SNNC_HOST_ORDER": order}
    return subprocess.run([program, case], check=True, capture_output=True, text=True, env=given).stdout.strip()


@pytest.mark.parametrize("case", FAULTS)
def test_a_missing_wait_is_found(program, case):
    assert said(program, case, "backwards") == FAULTS[case]


@pytest.mark.parametrize("case", [case for case, wanted in FAULTS.items() if wanted == "right"])
def test_kernels_that_wait_give_the_same_results_in_both_orders(program, case):
    assert said(program, case, "forwards") == "right"
