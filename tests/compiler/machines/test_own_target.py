"""A machine unknown to snnc is mapped and priced by its file alone."""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
from mapping_nets import Wire, program

from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.machines import parse_target
from snnc.compiler.machines.chip_links import find_routes
from snnc.compiler.machines.target import Target
from snnc.compiler.tiles import make_plan

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "howto" / "own-target.md"


def described() -> list[Target]:
    return [parse_target(text, "page") for text in re.findall(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)]


@pytest.fixture(scope="module")
def quill() -> Target:
    return described()[1]


def chain(*widths: int) -> StepProgram:
    names = ["x0", *(f"p{n}" for n in range(len(widths) - 1))]
    return program(dict(zip(names, widths, strict=True)), [Wire(a, b) for a, b in itertools.pairwise(names)])


def test_the_machines_of_the_how_to_are_read() -> None:
    bows, quill = described()
    assert (bows.chips, bows.clock_hz, bows.device) == (8, 1.85e9, "ipu21")
    assert (quill.chips, quill.tiles, quill.workers, quill.device) == (8, 2048, 4, "")
    assert find_routes(quill).route(1, 6) == ((1, 5), (5, 6))  # over the wire that the file lists first
    assert find_routes(quill).route(0, 7) == ((0, 7),)


def test_an_invented_chip_is_mapped_within_its_memory(quill: Target) -> None:
    plan = make_plan(chain(200, 1500, 1200, 10), quill, steps=20, batch=8)
    assert max(plan.tile_memory) <= 131072
    per_tile: dict[int, int] = {}
    for population in plan.populations:
        for block in population.blocks:
            per_tile[block.tile] = per_tile.get(block.tile, 0) + 1
    assert max(per_tile.values()) == 4  # its workers


def test_an_invented_chip_is_priced_with_its_own_numbers(quill: Target) -> None:
    net, options = chain(100, 150, 10), {"activity": {"x0": 0.1, "p0_o0": 0.0}, "capacity": {"x0": 100}, "chips": 1}
    plan = make_plan(net, quill, steps=20, batch=1, **options)
    phase = next(p for p in plan.phases if p.name == "forward: neurons")
    assert phase.sync == 60 + 40
    later = make_plan(net, replace(quill, vertex_start_cycles=6.001), steps=20, batch=1, **options)
    slower = next(p for p in later.phases if p.name == "forward: neurons")
    assert slower.compute - phase.compute == pytest.approx(4 * 0.001)  # a worker issues every fourth cycle
    assert phase.exchange == math.ceil((2 * 100 + 4 + 4) / 8) + 3 * 2  # ids, their count and the iteration, a fragment each
    assert plan.seconds == plan.cycles / 0.9e9


def test_a_faster_exchange_and_a_faster_clock_are_faster(quill: Target) -> None:
    net = chain(200, 400, 10)
    known = make_plan(net, quill, steps=20, batch=8)
    assert make_plan(net, replace(quill, exchange_bytes_per_cycle=16.0), steps=20, batch=8).cycles < known.cycles
    assert make_plan(net, replace(quill, clock_hz=1.8e9), steps=20, batch=8).seconds == pytest.approx(known.seconds / 2)


def test_the_compiler_knows_no_machine_by_name() -> None:
    """Docstrings may give examples."""
    makers = re.compile(r"\b(ipu\d*|gc2|gc200|bow|colossus|m2000|pod\d+)\b|ipu_|graphcore", re.IGNORECASE)
    told = {
        str(path.relative_to(ROOT)): found
        for path in sorted((ROOT / "compiler").rglob("*.py"))
        for found in [makers.findall(re.sub(r'"""(.|\n)*?"""', "", path.read_text(encoding="utf-8")))]
        if found
    }
    assert told == {}
