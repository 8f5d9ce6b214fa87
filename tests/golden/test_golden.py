"""Emitted files and output of snnc have not changed; ``python tests/golden/take_hashes.py --write`` accepts the current ones."""

import json

import pytest
from golden_cases import cases
from hashing import HASHES, Case, difference, digest, libraries, packed, total, workplace, written

REWRITE = "If that is meant, read what changed (--show prints the digests) and run: python tests/golden/take_hashes.py --write"


@pytest.fixture(scope="module")
def place():
    with workplace() as made:
        yield made


@pytest.fixture(scope="module")
def known():
    return json.loads(HASHES.read_text())


def some():
    """All cases; without --wide only every third of those that are quick runs."""
    always = {case.name for case in [case for case in cases() if case.quick][::3]}
    return [pytest.param(case, id=case.name, marks=() if case.name in always else pytest.mark.wide) for case in cases()]


@pytest.mark.parametrize("case", some())
def test_what_is_emitted_and_printed_is_as_it_was(case, place, known):
    text = difference(known, case.name, place.hashes(case))
    others = {name: (was, libraries()[name]) for name, was in known["libraries"].items() if libraries()[name] != was}
    if text and others:
        pytest.skip(f"{text}, but the hashes were taken with other versions: {others}")
    assert not text, f"{text}\n{REWRITE}"


def test_every_case_has_its_hashes_and_no_other(known):
    assert sorted(known["cases"]) == sorted(case.name for case in cases()), REWRITE


def test_a_difference_names_the_files():
    before = {"a.cpp": digest(b"1"), "b.cpp": digest(b"2"), "c.cpp": digest(b"3")}
    stored = json.loads(written(packed({"net": before})))
    assert difference(stored, "net", before) == ""
    now = {"a.cpp": digest(b"1"), "b.cpp": digest(b"4"), "d.cpp": digest(b"3")}
    assert total(now) != total(before)
    assert difference(stored, "net", now) == "net: b.cpp differ; c.cpp are gone; d.cpp are new"


def test_a_command_that_fails_is_hashed_with_its_exit_code(place):
    wrong = Case("wrong", "lif", (("check", "nothing.onnx"),))
    assert set(place.hashes(wrong)) == {"1 exit", "1 stderr"}
    assert place.hashes(wrong)["1 exit"] == digest(b"2")
