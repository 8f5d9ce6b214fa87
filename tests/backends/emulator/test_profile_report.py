"""``snnc inspect`` on the profile of an emulated program."""

import json

import pytest

from snnc.cli.main import run_command
from snnc.compiler.tiles.errors import ReportOptionError
from snnc.driver.reporting import report


def step(name, busiest, total, exchange):
    zero = dict.fromkeys(("sync_cycles", "link_cycles", "control_cycles"), 0)
    cycles = busiest + exchange
    return {
        "name": name, "kind": "execute", "executions": 2, "cycles": cycles, "compute_cycles_busiest": busiest, "compute_cycles_sum": total,
        "exchange_cycles": exchange, **zero,
    }  # fmt: skip


@pytest.fixture
def path(tmp_path):
    profile = {
        "tiles": 4, "clock_hz": 1e9, "cycles": 1400, "bytes_per_tile": 1000,
        "steps": [step("small", 100, 400, 0), step("big", 1000, 2000, 300)],
        "per_tile": {"memory": {"variables": [1, 2, 300, 4], "total": [11, 12, 310, 14]}},
    }  # fmt: skip
    file = tmp_path / "run.json"
    file.write_text(json.dumps(profile))
    return file


def test_text_sorts_steps_by_cycles_and_shows_balance_and_the_fullest_tile(path):
    text = report(path, "text").decode()
    assert text.index("execute big") < text.index("execute small")
    lines = {line.split()[1]: line for line in text.splitlines() if line.startswith("execute")}
    assert " 92.9%" in lines["big"]
    assert " 50%" in lines["big"], "2000 of 4 times 1000"
    assert " 100%" in lines["small"]
    assert "tile 2" in text
    assert "31.0% of 1,000 bytes" in text


def test_a_trace_lasts_as_long_as_the_program(path):
    events = json.loads(report(path, "trace"))["traceEvents"]
    assert [event["name"] for event in events] == ["small", "big", "big"]
    assert max(event["ts"] + event["dur"] for event in events) == pytest.approx(1.4)


def test_a_profile_is_shown_as_text_where_no_format_is_named(path, capsys):
    assert run_command(["inspect", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "execute big" in shown
    assert list(path.parent.iterdir()) == [path], "nothing is written beside it"


def test_drawings_of_plans_are_refused(path):
    with pytest.raises(ReportOptionError, match="text, json, trace"):
        report(path, "svg")
