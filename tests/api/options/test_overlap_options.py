"""Host overlap as users see it: options, estimates, summaries, reports and traces."""

import json

import pytest

import snnc
from snnc.cli.compile_summary import plan_lines
from snnc.errors import OptionValueError
from snnc.options.compile_options import from_data, options, to_data
from snnc.report import Subject, write
from snnc.report.pictures.timeline import whole_step
from snnc.report.view import emulated_host


def estimate(**given):
    net = snnc.Sequential(20, snnc.Dense(30, seed=1), snnc.LIF(), snnc.Dense(4, seed=2), snnc.LI())
    return snnc.estimate(net, "gc200", steps=10, batch=8, loss="ce_count", optimizer="adam:0.01", **given)


def test_an_estimate_tells_what_the_step_hides():
    on, off = estimate(overlap_host_io="on", num_io_tiles=40), estimate(overlap_host_io="off")
    data, without = on.to_data(), off.to_data()
    assert (data["io_tiles"], without["io_tiles"]) == (40, 0)
    assert data["host_ms"] == without["host_ms"] == pytest.approx(data["host_hidden_ms"], rel=1e-3)
    assert without["host_hidden_ms"] == 0
    assert without["step_with_host_ms"] == pytest.approx(without["step_ms"] + without["host_ms"])
    assert data["step_ms"] == data["step_with_host_ms"] == pytest.approx(1e3 * on.plan.seconds, rel=1e-6)
    (line,) = [line for line in plan_lines(on.plan) if line.startswith("host")]
    assert "40 tiles a chip set aside" in line
    assert not [line for line in plan_lines(off.plan) if line.startswith("host")]


def test_reports_and_traces_show_the_stream_beside_the_step():
    plan = estimate(overlap_host_io="on").plan
    (span,) = whole_step(plan).host
    handed = sum(p.runs * p.cycles for p in plan.phases if p.name.endswith("I/O tiles"))
    assert (span.start, span.cycles) == (handed, pytest.approx(plan.host_seconds * plan.target.clock_hz))
    subject = Subject(plan, {}, None, None)
    events = json.loads(write(subject, "trace"))["traceEvents"]
    (host,) = [event for event in events if event.get("cat") == "host"]
    beside = [e for e in events if e.get("cat") == "compute" and e["pid"] == host["pid"] and e["ts"] < host["ts"] + host["dur"]]
    assert any(event["ts"] + event["dur"] > host["ts"] and event["tid"] != host["tid"] for event in beside)
    assert 'class="lane thin host"' in write(subject, "html").decode()
    assert "run beside it" in write(subject, "text").decode()
    facts = json.loads(write(subject, "json"))["facts"]
    assert facts["io_tiles"] == plan.overlap.tiles
    assert facts["tiles_used"] == sum(size > 0 for size in plan.tile_memory)
    off = estimate(overlap_host_io="off").plan
    assert whole_step(off).host == ()
    assert 'class="lane thin host"' not in write(Subject(off, {}, None, None), "html").decode()


def test_options_are_kept_and_refused_where_they_mean_nothing():
    chosen = options("gc200", overlap_host_io="on", num_io_tiles=64)
    assert from_data(to_data(chosen)) == chosen
    for target, given, message in (
        ("gc200", {"overlap_host_io": "yes"}, "one of auto, on, off"),
        ("gc200", {"overlap_host_io": "off", "num_io_tiles": 32}, "leave one of them out"),
        ("gc200", {"num_io_tiles": 0}, "has to be 1 or more"),
        ("cpu", {"overlap_host_io": "on"}, "has no tiles"),
        ("poptorch", {"overlap_host_io": "on"}, "PopTorch streams what its operations read"),
    ):
        with pytest.raises(OptionValueError, match=message):
            options(target, **given)
    assert options("poptorch").overlap_host_io == "auto"


def test_nothing_is_called_emulated_before_a_run():
    plan = estimate(overlap_host_io="on").plan
    counted = {"host_cycles_last_run": 0.0, "host_cycles_beside_last_run": 0.0, "cycles_last_run": 0.0}
    assert emulated_host(Subject(plan, {}, counted, None)) is None
    clock = plan.target.clock_hz
    ran = {"host_cycles_last_run": 2e-3 * clock, "host_cycles_beside_last_run": 1e-3 * clock, "cycles_last_run": clock}
    assert emulated_host(Subject(plan, {}, ran, None)) == pytest.approx({"milliseconds": 2.0, "hidden": 1.0})
