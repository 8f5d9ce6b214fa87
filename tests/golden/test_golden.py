"""Emitted files and output of snnc have not changed; ``python tests/golden/take_hashes.py --write`` accepts the current ones."""

import json

import pytest
from golden_cases import cases
from hashing import HASHES, Case, difference, digest, libraries, packed, total, workplace, written

REWRITE = "If that is meant, read what changed (--show prints the digests) and run: python tests/golden/take_hashes.py --write"
OFTEN = (
    *("lif cpu --loss ce_mean_membrane --truncate 2", "given_parameters cpu --loss ce_mean_membrane", "feedback cpu --loss ce_count"),
    *("recurrent cuda --loss ce_mean_membrane", "convolutions cuda --loss ce_mean_membrane", "several_inputs cuda"),
    *("lif gc200", "sparse poptorch --loss ce_mean_membrane", "alif check", "several_inputs check"),
    *("refused: an unknown target", "refused: an option without a loss", "refused: no *", "targets"),
)
"""Cases of ``./test``: each kind of target, several networks, commands that print."""


@pytest.fixture(scope="module")
def place():
    with workplace() as made:
        yield made


@pytest.fixture(scope="module")
def known():
    return json.loads(HASHES.read_text())


@pytest.mark.representative(*OFTEN)
@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
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
