"""Loops in disassembled code, and their evaluation by ``benchmarks/scripts/prediction/riscv_counts.py``."""

import shutil
import sys
from pathlib import Path

import pytest

from snnc.compiler.tiles.vertices.loops import Loop, as_formula

SCRIPTS = Path(__file__).parents[2] / "benchmarks" / "scripts" / "prediction"

NESTED = """
unit.o:     file format elf32-littleriscv

Disassembly of section .text:

00000000 <total>:
total():
/tmp/unit.cpp:3
       0:\taddi\ta5,zero,0

00000004 <.L2>:
/tmp/unit.cpp:4
       4:\tlw\ta3,0(a0)
       8:\tbeq\ta3,zero,1c <.L4>

0000000c <.L3>:
/tmp/unit.cpp:5 (discriminator 3)
       c:\tflw\tfa5,0(a1)
      10:\tfadd.s\tfa4,fa4,fa5
      14:\taddi\ta3,a3,-1
      18:\tbne\ta3,zero,c <.L3>

0000001c <.L4>:
/tmp/other.hpp:9
      1c:\taddi\ta0,a0,4
      20:\tjalr\tra,0(a7)
/tmp/unit.cpp:4
      24:\tbne\ta0,a2,4 <.L2>
      28:\tjalr\tzero,0(ra)

0000002c <straight>:
straight():
/tmp/unit.cpp:8
      2c:\tjal\tzero,0 <total>
"""
"""An outer loop of 5 instructions, with a call, around an inner one of 4; and a function without a loop."""


@pytest.fixture
def scripts(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    import riscv_counts
    import riscv_loops

    yield riscv_counts, riscv_loops
    for name in ("riscv_counts", "riscv_loops"):
        sys.modules.pop(name, None)


def by_head(riscv_loops, text, function="total"):
    code = riscv_loops.parse(text, "unit.cpp")
    return {loop.head: loop for loop in riscv_loops.loops(function, code[function])}


def test_instructions_of_functions_are_read_with_their_lines(scripts):
    _, riscv_loops = scripts
    code = riscv_loops.parse(NESTED, "unit.cpp")
    assert {name: len(found) for name, found in code.items()} == {"total": 11, "straight": 1}
    assert [i.line for i in code["total"]] == [3, 4, 4, 5, 5, 5, 5, 0, 0, 4, 4]
    assert code["straight"][0].target == 0
    assert [i.name for i in code["total"] if i.calls] == ["jalr"]


def test_an_inner_loop_is_no_part_of_the_outer_one(scripts):
    _, riscv_loops = scripts
    found = by_head(riscv_loops, NESTED)
    assert sorted(found) == [0x4, 0xC]
    inner, outer = found[0xC], found[0x4]
    assert inner.trip() == (4, 4)
    assert outer.trip() == (5, 5)
    assert outer.calls == 1
    assert inner.lines == {5}
    assert outer.lines == {0, 4}
    assert inner.trip(lambda i: 0.5 if i.name.startswith("f") else 1.0) == (3, 3)


def test_a_trip_has_a_shortest_and_a_longest_way(scripts):
    _, riscv_loops = scripts
    text = """
00000000 <total>:
/tmp/unit.cpp:1
       0:\tlw\ta3,0(a0)
       4:\tbeq\ta3,zero,14 <.L3>
       8:\tadd\ta4,a4,a3
       c:\tadd\ta4,a4,a3
      10:\tadd\ta4,a4,a3
      14:\taddi\ta0,a0,4
      18:\tbne\ta0,a2,0 <total>
      1c:\tjalr\tzero,0(ra)
"""
    (loop,) = by_head(riscv_loops, text).values()
    assert loop.trip() == (4, 7)


def test_two_ways_back_are_one_loop(scripts):
    _, riscv_loops = scripts
    text = """
00000000 <total>:
/tmp/unit.cpp:1
       0:\taddi\ta0,a0,4
       4:\tlw\ta3,0(a0)
       8:\tbeq\ta3,zero,0 <total>
       c:\tadd\ta4,a4,a3
      10:\tbne\ta0,a2,0 <total>
      14:\tjalr\tzero,0(ra)
"""
    (loop,) = by_head(riscv_loops, text).values()
    assert loop.latches == (0x0, 0xC)
    assert loop.trip() == (3, 5)


def test_a_loop_with_two_ways_in_is_none_and_makes_what_holds_it_uncountable(scripts):
    _, riscv_loops = scripts
    text = """
00000000 <total>:
/tmp/unit.cpp:1
       0:\tbeq\ta0,zero,8 <total+0x8>
       4:\taddi\ta0,a0,1
       8:\tbne\ta0,a1,4 <total+0x4>
       c:\tbne\ta0,a2,0 <total>
      10:\tjalr\tzero,0(ra)
"""
    (loop,) = by_head(riscv_loops, text).values()
    assert loop.head == 0
    assert not loop.countable


def test_the_smallest_loop_with_the_line_of_a_match_is_compared(scripts):
    riscv_counts, riscv_loops = scripts
    source = "\n".join(["", "", "float total(", "  for (each list)", "    for (each value)", "}"])
    match = riscv_counts.Match("forward", {"values": 1}, "total", "for (each value)", {}, "all")
    code = riscv_loops.parse(NESTED, "unit.cpp")
    assert riscv_counts.find_loop(match, source, code).head == 0xC
    loops = {"forward": (Loop("values", as_formula(1), as_formula(2)),)}
    row = riscv_counts.row_of(match, loops, source, code)
    assert (row.cycles, row.shortest, row.longest, row.paired) == (2, 4, 4, 3)
    with pytest.raises(ValueError, match="no line of the codelets"):
        riscv_counts.find_loop(riscv_counts.Match("forward", {"values": 1}, "total", "while (true)", {}), source, code)


def test_each_loop_of_the_cost_model_has_a_match_or_a_reason(scripts):
    riscv_counts, _ = scripts
    found = riscv_counts.loops_of(riscv_counts.benchmark("w1").program())
    for match in riscv_counts.MATCHES:
        assert riscv_counts.cycles_of(match, found) > 0, match
    matched = {(match.vertex, name) for match in riscv_counts.MATCHES for name in match.loops}
    every = {(vertex, loop.name) for vertex, loops in found.items() if not vertex.endswith("of values") for loop in loops}
    assert every - matched == set(riscv_counts.UNMATCHED)


@pytest.mark.wide
@pytest.mark.skipif(shutil.which("riscv64-unknown-elf-g++") is None, reason="no RISC-V compiler")
def test_the_machine_code_of_w1_has_a_loop_for_every_match(scripts, tmp_path):
    riscv_counts, _ = scripts
    program = riscv_counts.benchmark("w1").program()
    found = riscv_counts.loops_of(program)
    source, code = riscv_counts.compile_codelets(tmp_path, program)
    rows = [riscv_counts.row_of(match, found, source, code) for match in riscv_counts.MATCHES]
    assert None not in rows
