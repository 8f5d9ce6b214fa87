"""The script that runs everything that needs a GPU, ``benchmarks/scripts/gpu/session.py``: limits, files, and its commands."""

import json
import sys
import tomllib
from pathlib import Path

import pytest

from snnc.benchmarks.conditions import Conditions
from snnc.benchmarks.cpu.workloads import workloads
from snnc.benchmarks.cuda.entries import CUDA_ENTRIES, precisions, requested
from snnc.benchmarks.cuda.workloads import CUDA_WORKLOADS

SCRIPTS = Path(__file__).parents[2] / "benchmarks" / "scripts" / "gpu"


@pytest.fixture
def session(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    import session

    yield session
    sys.modules.pop("session", None)


def option(part, name):
    return part.command[part.command.index(name) + 1] if name in part.command else ""


@pytest.mark.parametrize("check", [False, True])
def test_every_part_names_networks_engines_tests_and_files_that_exist(session, tmp_path, check):
    found = session.parts(tmp_path, check)
    assert len({part.name for part in found}) == len(found)
    assert len({part.rows for part in found if part.rows} | {session.LOG, "session.json", "measured.toml"}) <= 8
    for part in found:
        if "--suite" in part.command:
            assert workloads(option(part, "--nets"), CUDA_WORKLOADS, "cuda")
            engines = [name for name in option(part, "--engines").split(",") if name]
            assert requested(engines, precisions(option(part, "--precision") or "float32"), CUDA_ENTRIES)
            assert Path(option(part, "--json")).name == part.rows
        for word in part.command:
            if word.endswith(".py"):
                assert (session.ROOT / word).is_file()


def test_a_part_is_stopped_at_its_limit_and_the_rows_that_it_wrote_count(session, tmp_path):
    (tmp_path / "r.json").write_text(json.dumps({"rows": [1, 2]}))
    code = "import time; time.sleep(60)"
    part = session.Part("slow", (sys.executable, "-c", code), 60, "r.json")
    found = session.run_part(part, 1.0, tmp_path, {})
    assert (found["outcome"], found["rows"]) == ("stopped after 1 s", 2)
    assert found["seconds"] < 10


def test_what_fails_is_missing_or_runs_no_test_is_no_success(session, tmp_path):
    def outcome(*command, expected=""):
        return session.run_part(session.Part("any", command, 20, expected=expected), 20, tmp_path, {})["outcome"]

    say = (sys.executable, "-c", "print('3 passed')")
    assert outcome(*say, expected=" passed") == "ok"
    assert outcome(sys.executable, "-c", "print('3 skipped')", expected=" passed").startswith("its output has no passed")
    assert outcome(sys.executable, "-c", "raise SystemExit(4)") == "exit code 4"
    assert outcome("no-such-tool") == "not run: no-such-tool is not installed"


def test_parts_without_time_are_named_and_the_record_is_complete(session, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(session, "parts", lambda out, check: (session.Part("one", (sys.executable, "-c", ""), 5),) * 2)
    monkeypatch.setattr(sys, "argv", ["session.py", str(tmp_path / "out"), "--minutes", "0", "--commit", "abc"])
    assert session.main() == 1
    record = json.loads((tmp_path / "out" / "session.json").read_text())
    assert record["commit"] == "abc"
    assert [one["outcome"] for one in record["parts"]] == ["left out: no time left"] * 2
    monkeypatch.setattr(sys, "argv", ["session.py", str(tmp_path / "out"), "--only", "none"])
    with pytest.raises(SystemExit):
        session.main()
    assert "unknown part none" in capsys.readouterr().err


def test_measured_rows_become_steps_of_the_reproduction(session):
    conditions = {"weights": "w", "data": "d", "activity": {"input": 0.05, "hidden1": 0.0444989}}
    base = {"workload": "W1-B1024", "density": 0.05, "mode": "exact", "times": "measured", "conditions": conditions}
    rows = [
        base | {"engine": "snnc", "ms_median": 0.29312},
        base | {"engine": "spikingjelly", "ms_median": 3.6, "joules": 1.23456},
        base | {"engine": "torch", "mode": "tf32", "ms_median": 1.0},
        base | {"engine": "torch", "times": "no measurement", "ms_median": 1.0},
    ]
    data = tomllib.loads(session.measured_toml(rows, "NVIDIA H100", "2030-01-01", "abc"))
    (run,) = data["run"]
    assert run["step"] == [
        {"net": "w1-b1024-5", "program": "snnc", "ms": 0.2931},
        {"net": "w1-b1024-5", "program": "SpikingJelly", "ms": 3.6, "joules": 1.23},
    ]
    assert Conditions(**data["problem"]["w1-b1024-5"]).activity == conditions["activity"]
    assert run["step"][0]["net"] in {w.label for w in CUDA_WORKLOADS}
