"""Two plans side by side."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from plans import made_plan

from snnc.compiler.tiles.errors import ReportOptionError
from snnc.report import FORMATS, Subject, write
from snnc.report.compare import compare, verdict

PLAN = made_plan()
A = Subject(PLAN, {})


def slower(kind: str, cycles: float) -> Subject:
    phases = (PLAN.phases[0], replace(PLAN.phases[1], **{kind: getattr(PLAN.phases[1], kind) + cycles}), *PLAN.phases[2:])
    return Subject(replace(PLAN, phases=phases), {})


@pytest.mark.parametrize("kind", ["compute", "exchange", "sync"])
def test_the_verdict_names_what_makes_the_difference(kind: str) -> None:
    other = slower(kind, 5000.0)
    ratio = other.plan.cycles / PLAN.cycles
    assert f"A is {ratio:.3g} times as fast" in verdict(A, other)
    assert f"the {kind} of “{PLAN.phases[1].name}”, 100 %" in verdict(A, other)
    assert f"B is {ratio:.3g} times as fast" in verdict(other, A)


def test_plans_of_other_batches_are_compared_by_sample_and_clocks_are_named() -> None:
    twice = Subject(replace(PLAN, batch=2 * PLAN.batch, target=replace(PLAN.target, clock_hz=2 * PLAN.target.clock_hz)), {})
    assert verdict(A, twice).startswith("B is 4 times as fast")
    assert "clock of B alone would make it 2 times as fast" in verdict(A, twice)
    assert verdict(A, A).startswith("Both take the same time")


def test_plans_of_other_lengths_are_no_fair_comparison() -> None:
    longer = Subject(replace(PLAN, steps=2 * PLAN.steps), {})
    assert "They differ in the number of steps" in verdict(A, longer)


def test_rows_hold_both_numbers_and_the_change() -> None:
    other = slower("compute", 1000.0)
    rows = {r["name"]: r for r in compare(A, other)["phases"]}
    phase = PLAN.phases[1]
    assert rows[phase.name]["b"] - rows[phase.name]["a"] == pytest.approx(1000 * phase.runs)
    assert rows["all exchange"]["change"] == 0
    assert rows["all compute"]["change"] > 0


@pytest.mark.parametrize("fmt", FORMATS)
def test_formats_that_compare_do_and_the_others_refuse(fmt: str) -> None:
    other = slower("compute", 1000.0)
    if fmt in ("html", "text", "json"):
        assert b"comparison" in write(A, fmt, other).lower()
    else:
        with pytest.raises(ReportOptionError, match=r"SNNC-E315.*single plan"):
            write(A, fmt, other)


def test_json_holds_the_comparison() -> None:
    data = json.loads(write(A, "json", slower("compute", 1000.0)))
    assert data["comparison"]["titles"][0].endswith("batch 16")
