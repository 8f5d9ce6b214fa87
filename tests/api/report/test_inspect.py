from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser

import pytest
from mapping_nets import w1

from snnc.compiler.ir.plan import Plan
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.machines import load_target
from snnc.compiler.tiles import make_plan
from snnc.compiler.tiles.errors import ReportOptionError
from snnc.report import FORMATS, Subject, render, summarise, write
from snnc.report.profile import slim

NAMES = {
    "forward: initial states": "F0 initial states",
    "forward: relays": "F1 relay",
    "forward: windows": "F1b windows",
    "forward: neurons": "F2 neurons",
    "loss: scores": "L1 scores",
    "loss: adjoints": "L1 loss",
    "loss: sum": "L2 loss",
    "backward: relays and source gradients": "B1 relay and source gradients",
    "backward: neurons": "B2 neurons",
    "update: private gradients": "U1 private gradients",
    "update: optimiser": "U1 update",
    "update: replicas": "U2 replicas",
    "update: shared numbers": "U2 shared numbers",
    "update: weight copies": "U2 weights to sources",
}
"""What the emitted program calls the supersteps of a plan."""
EVIL = ['"; system("touch x"); //', "<script>alert(1)</script>", "</script><img src=x onerror=alert(1)>", "\x1b[31mred\n{{ 7 * 7 }}"]


@cache
def mapped() -> tuple[Plan, StepProgram]:
    program = w1()
    activity = {"x0": 0.05, "p0_o0": 0.05}
    return make_plan(program, load_target("gc200"), steps=100, batch=64, activity=activity, activity_source="measured", effort=0), program


def planned(label: str = "hidden") -> tuple[Plan, StepProgram]:
    """W1 on a GC200, with `label` in every name."""
    plan, program = mapped()
    program = replace(
        program,
        name=label,
        populations=tuple(replace(p, label=f"{label} {p.id}") for p in program.populations),
        inputs=tuple(replace(i, label=label) for i in program.inputs),
        assumptions=(label,),
    )
    populations = tuple(replace(p, label=f"{label} {p.id}") for p in plan.populations)
    return replace(plan, name=label, populations=populations, activity_source=f"measured: {label}"), program


class Page(HTMLParser):
    """Collects tags and what a page would load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.loads: list[str] = []
        self.scripts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.loads += [value or "" for name, value in attrs if name in ("src", "href")]
        assert not any(name.startswith("on") for name, _ in attrs)


def test_text_tells_the_plan_in_six_lines_and_a_row_for_each_layer() -> None:
    plan, program = planned()
    lines = render(plan, "text", program=summarise(program)).splitlines()
    assert [line.split()[0] for line in lines[:6]] == ["network", "schedule", "placement", "memory", "time", "activity"]
    assert lines[6] == ""
    assert lines[7] == "bottlenecks (predicted)"
    assert [line.split()[0] for line in lines[8:11]] == ["time", "memory", "balance"]
    assert [line.split()[:2] for line in lines[13:15]] == [["hidden", "p0"], ["hidden", "p1"]]
    assert "101 iterations of 2 stages" in lines[1]
    assert f"{max(plan.tile_memory):,} of 638,976 bytes" in lines[3]


@pytest.mark.parametrize("fmt", FORMATS)
def test_every_format_is_written_without_a_program_too(fmt: str) -> None:
    assert len(write(Subject(planned()[0], {}), fmt)) > 500


def test_json_holds_the_numbers_of_the_plan() -> None:
    plan, program = planned()
    data = json.loads(render(plan, "json", program=summarise(program)))
    assert data["cycles"] == plan.cycles
    assert data["facts"]["iterations"] == 101
    assert [layer["neurons"] for layer in data["layers"]] == [256, 20]
    assert sum(p["predicted_total"] for p in data["phases"]) == pytest.approx(plan.cycles)


def test_the_page_needs_nothing_from_elsewhere() -> None:
    plan, program = planned()
    page = Page(render(plan, "html", program=summarise(program)))
    assert set(page.loads) <= {"data:,"}
    assert page.tags.count("script") == 2
    assert "canvas" in page.tags
    assert "url(#" in render(plan, "html")
    assert not re.search(r"url\((?!#)|@import|https?://(?!www\.w3\.org/)", render(plan, "html"))
    assert len(render(plan, "html")) < 200_000


@pytest.mark.parametrize("name", EVIL)
def test_names_of_the_model_cannot_become_markup(name: str) -> None:
    plan, program = planned(name)
    html = render(plan, "html", program=summarise(program))
    page = Page(html)
    assert page.tags.count("script") == 2
    assert "img" not in page.tags
    assert "<script>alert" not in html
    embedded = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    assert embedded is not None
    labels = json.loads(embedded[1])["maps"][0]["layers"]
    assert labels == [f"{name} p0", f"{name} p1"]
    assert "49" not in labels[0]


@pytest.mark.parametrize("name", EVIL)
def test_names_of_the_model_stay_text_in_the_map(name: str) -> None:
    root = ET.fromstring(render(planned(name)[0], "svg"))
    assert not root.findall(".//{*}script")
    assert not root.findall(".//{*}img")


def test_text_for_terminals_holds_no_control_characters() -> None:
    plan, program = planned(EVIL[3])
    text = render(plan, "text", program=summarise(program))
    assert all(c.isprintable() or c == "\n" for c in text)


def test_the_map_has_a_cell_for_every_tile() -> None:
    root = ET.fromstring(render(planned()[0], "svg"))
    titled = [r for r in root.findall("{*}rect") if r.find("{*}title") is not None]
    assert len(titled) == 1472
    assert len({(r.get("x"), r.get("y")) for r in titled}) == 1472
    assert len({r.get("x") for r in titled}) == 46


def test_emulated_cycles_stand_beside_predicted_ones() -> None:
    plan, _ = planned()
    step = {
        "name": "F2 neurons",
        "executions": 3 * plan.iterations,
        "compute_cycles_busiest": 3e6,
        "sync_cycles": 3.0,
        "exchange_cycles": 30.0,
    }
    data = json.loads(render(plan, "json", profile={"steps": [step]}))
    row = next(p for p in data["phases"] if p["name"] == "forward: neurons")
    assert row["emulated"] == {"compute": 1e6, "sync": 1.0, "exchange": 10.0}
    assert data["emulated"] is None
    html = render(plan, "html", profile={"steps": [step]})
    assert "emulated" in html
    plain = re.sub(r"<script>.*?</script>|<style>.*?</style>", "", render(plan, "html"), flags=re.DOTALL)
    assert "emulated" not in plain.lower().replace('"emulated": {}', "")


def test_predicted_numbers_are_labelled() -> None:
    plan, program = planned()
    assert "predicted" in render(plan, "text", program=summarise(program))
    assert render(plan, "html").count("predicted") > 10


def test_a_profile_of_something_else_is_refused() -> None:
    with pytest.raises(ReportOptionError, match="SNNC-E315"):
        render(planned()[0], "html", profile={"steps": 3})


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(ReportOptionError, match=r"SNNC-E315.*'pdf'.*html, text, json, svg, png, graphml, dot, trace"):
        render(planned()[0], "pdf")


def test_a_summary_is_plain_data() -> None:
    summary = summarise(w1())
    assert json.loads(json.dumps(summary)) == summary
    assert summary["parameters"] == 256 * (700 + 256) + 20 * 256 + 2


def test_emulated_numbers_of_each_tile_are_kept_by_step() -> None:
    plan, _ = planned()
    known = [p for p in plan.phases if p.name in NAMES]
    steps = [{"name": NAMES[p.name], "executions": 2 * p.runs, "compute_cycles_busiest": 10.0} for p in known]
    per_tile = {"compute_cycles": [8, 4] + [0] * 1470, "memory": {"total": [100] * 1472}}
    kept = json.loads(json.dumps(slim({"steps": steps, "per_tile": per_tile})))
    assert "per_tile" not in kept
    data = json.loads(render(plan, "json", profile=kept))
    assert data["tiles"]["emulated"] == {"compute": [4, 1, 2, 1, 0, 1470], "memory": [100, 1472]}
    assert data["emulated"] == pytest.approx(5.0 * len(known))


@pytest.mark.parametrize(
    "tiles", [{"memory": [1, 99999]}, {"memory": [1]}, {"memory": "many"}, {"compute_cycles": [-1, 1472]}, {"compute_cycles": [1.5, 1472]}]
)
def test_a_profile_of_other_tiles_is_refused(tiles: dict[str, object]) -> None:
    with pytest.raises(ReportOptionError, match="SNNC-E315"):
        render(planned()[0], "json", profile={"steps": [], "tiles_in_all": tiles})
