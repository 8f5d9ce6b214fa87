"""Compare RISC-V instructions of emitted codelets with the cost model's cycles.

    python benchmarks/scripts/prediction/riscv_counts.py [--write]

The script emits W1 for a gc200 and compiles its codelets (and, separately, the loops over columns that they call) for a 32-bit
RISC-V core. It finds the loops in the machine code, and compares the instructions per trip with the coefficients of the loops. Both numbers
count the issue slots of an in-order core, because an IPU's worker issues one bundle at a time. The compiler is Debian's:
``apt-get install gcc-riscv64-unknown-elf``. ``--write`` writes the tables to docs/explanation/calibration.md.
"""

from __future__ import annotations

import argparse
import math
import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal, TypeAlias

from riscv_loops import CodeLoop, Instruction, loops, parse

from snnc.backends.poplar.emit import emit_poplar
from snnc.benchmarks.benchmark import by_buffer
from snnc.benchmarks.nets import benchmark
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.machines import load_target
from snnc.compiler.tiles import make_plan
from snnc.compiler.tiles.codelets.block_loops import backward_loops, forward_loops, read_loops, source_loops
from snnc.compiler.tiles.codelets.block_vertices import BlockLink
from snnc.compiler.tiles.mapped.network import describe
from snnc.compiler.tiles.vertices.codelet_costs import network_costs
from snnc.compiler.tiles.vertices.loops import Loop
from snnc.compiler.tiles.vertices.loss_vertices import loss_scores, loss_sum, sample_loss
from snnc.compiler.tiles.vertices.parameter_vertices import update, weight_rows
from snnc.compiler.tiles.vertices.relay_loops import bit_loops, compact_loops, window_loops

STAND_INS: Final = Path(__file__).parent / "riscv"
"""Folder of headers that replace those of Poplar, and of ``probes.cpp``, the loops that are compiled separately."""
PAGE: Final = Path(__file__).parents[3] / "docs" / "explanation" / "calibration.md"
BEGIN, END = "<!-- riscv_counts.py writes from here -->", "<!-- to here -->"
"""Lines of the page before and after the tables."""
COMPILER: Final = "riscv64-unknown-elf-"
"""Prefix of the names of the compiler's programs."""
FLAGS: Final = (
    *("-std=c++17", "-march=rv32imf_zbb", "-mabi=ilp32f", "-O3", "-gdwarf-4", "-ffreestanding", "-fno-math-errno", "-fno-exceptions"),
    *("-ffp-contract=off", "-fno-jump-tables", "-fno-ipa-icf", "-mno-relax"),
)
"""Compiler flags. Zbb counts leading zeros and bits in one instruction, as an IPU does. With -O3, sweeps (passes over a list, each for
several columns) keep their columns in registers. Products and sums are not fused, as in the cost model."""
SLOW: Final = 5
"""Cycles per float that the cost model assumes for dividing two floats, or for their square roots; on RISC-V each is one instruction."""

Paired: TypeAlias = Literal["no", "arithmetic", "all", "loop"]
"""Instructions that an IPU executes for two floats at once. ``"no"``: none; ``"arithmetic"``: float arithmetic only, because states are not
aligned for wider loads and stores; ``"all"``: loads and stores, too; ``"loop"``: every instruction of a trip."""
Way: TypeAlias = Literal["both", "shortest", "longest", "more pairs"]
"""Compared number. ``"both"``: the mean of the shortest and the longest path through a trip; ``"shortest"``, ``"longest"``: that path;
``"more pairs"``: the instructions that each further pair of columns adds."""


@dataclass(frozen=True)
class Match:
    """Loops of the cost model, and the compiled loop with which they are compared."""

    vertex: str
    """The vertex, a key of the result of :func:`loops_of`."""
    loops: Mapping[str, int]
    """Names of its loops in the cost model, with the number of trips of each."""
    function: str
    text: str
    """The compiled loop is the smallest one in functions whose name matches `function`, with instructions of a source line with `text`."""
    amounts: Mapping[str, int]
    """Quantities on which the cycles of a trip depend, by name."""
    paired: Paired = "no"
    way: Way = "both"
    """How instructions are counted."""
    note: str = ""
    trips: int = 1
    """Number of trips of the compiled loop that correspond to the trips in `loops`."""


@dataclass(frozen=True)
class Row:
    """A line of the table, for the trips of `match`: cycles in the cost model, and instructions on the shortest and on the longest path.

    `paired` is the number of instructions weighted by :func:`weigher`, and `calls` the number of calls.
    """

    match: Match
    cycles: float
    shortest: float
    longest: float
    paired: float
    calls: int

    @property
    def counted(self) -> float:
        return (self.shortest + self.longest) / 2


_FOUR: Final[Mapping[str, int]] = {"samples": 8, "count": 8, "outputs": 2, "unaligned": 0, "events": 1, "width": 1}
"""Quantities of a loop over four pairs of columns."""
_TWO: Final = {**_FOUR, "count": 4, "samples": 4}
"""Quantities of a loop over two pairs of columns."""
_ODD: Final = {**_FOUR, "count": 5}
"""Quantities of a loop over two pairs of columns and a single one."""


def _column_matches() -> Iterator[Match]:
    """Yield the matches of loops over columns, most of them with two and with four pairs."""
    for vertex, loop, probe, text in (
        ("forward", "weights of a spike", "add_rows", "held.pair[p] += row[p];"),
        ("backward", "weights of a spike", "add_to_rows", "row[p] += held.pair[p];"),
        ("forward of values", "weights of a value", "add_products", "for (unsigned i = 0; i < width; ++i) {"),
        ("backward of values", "weights of a value", "add_outer", "for (unsigned i = 0; i < width; ++i) {"),
        ("source gradient", "deltas of a weight", "add_some_samples", "o < outputs; ++o, rows += batch"),
    ):
        yield Match(vertex, {loop: 1}, f"probe_{probe}_2", text, _TWO, "all", note="2 pairs")
        yield Match(vertex, {loop: 1}, f"probe_{probe}_4", text, _FOUR, "all", note="4 pairs")
        yield Match(vertex, {loop: 1}, f"probe_{probe}_4", text, _FOUR, "all", "more pairs", "each further pair")
    odd, dots = "held.pair[p] += row[p];", "for (unsigned o = 0; o + 1 < outputs; o += 2)"
    yield Match("forward", {"weights of a spike": 1}, "probe_add_rows_odd", odd, _ODD, "all", note="2 pairs and 1 column")
    yield Match("source gradient", {"weights of two deltas": 1}, "probe_add_dots_4", dots, _TWO, "all", note="4 columns")
    for way in ("forward", "backward"):
        text = "if (lengths[s] != 0)"
        yield Match(way, {"sweeps over a list": 1, "columns of a sweep": 8}, f"probe_sweep_{way}", text, _FOUR, "all", "longest")


_STORED: Final = "to[apart] = value[1];"
"""A store that occurs only in equations of two neurons."""
MATCHES: Final = (
    *_column_matches(),
    Match("forward", {"equations of two neurons": 1}, "Forward0", _STORED, {}, "arithmetic"),
    Match("readout forward", {"equations of two neurons": 1}, "Forward1", _STORED, {}, "arithmetic"),
    Match("backward", {"equations of two neurons": 1}, "Backward0", _STORED, {}, "arithmetic"),
    Match("readout backward", {"equations of two neurons": 1}, "Backward1", _STORED, {}, "arithmetic"),
    Match("relay compact", {"groups of four mask words": 1}, "scan", "if ((unit[0] | unit[1]", {}, way="shortest"),
    Match("relay compact", {"groups with a bit": 1}, "scan", "take<KIND>(&unit[n * WORDS], first[i + n]);", {}, note="4 words", trips=4),
    Match("relay compact", {"single mask units": 1}, "scan", "for (; i < units; ++i, unit += WORDS)", {}),
    Match("relay compact", {"ids found": 1}, "scan", "bits ^= 0x80000000u >> lead;", {}),
    Match("relay compact", {"runs of mask words": 1}, "scan", "run = left < row ? left : row", {}),
    Match("relay compact", {"pieces of masks": 1}, "RelayCompact0", "counts[2 * p + 1] = down;", {}, note="without the call"),
    Match("relay windows", {"words of ids joined": 1}, "join", "write(place, ids[0] | ids[STEP] << 16);", {}),
    Match("relay windows", {"counts of pieces": 1}, "RelayWindows0", "spikes += counts[2 * q];", {}),
    Match("relay windows", {"words of ids copied": 1}, "copy_share", "to[i] = from[i];", {}),
    Match("relay windows", {"runs of words copied": 1}, "copy_share", "begin += WORKERS, ++copied.runs", {}, way="shortest"),
    Match("relay windows", {"lists of ids": 1}, "RelayWindows1", "const unsigned first = at % WORKERS", {}, note="without the call"),
    Match("relay bits", {"words whose bits are counted": 1}, "count_bits", "__builtin_popcount(bits[w])", {}),
    Match("relay bits", {"words of bits read": 1}, "list_bits", "for (unsigned w = begin; w < end; ++w)", {}, way="shortest"),
    Match("relay bits", {"ids listed": 1}, "list_bits", "left ^= 0x80000000u >> lead;", {}),
    Match("relay bits", {"lists of ids": 1}, "RelayBits0", "const unsigned first = at % WORKERS", {}, note="without the calls"),
    Match("loss scores", {"steps of a class": 1}, "LossScores", "total += record[t * next];", {"classes": 1}),
    Match("loss scores", {"classes": 1}, "LossScores", "scores[c] = total / static_cast<float>(steps);", {}),
    Match("loss", {"classes of a step": 1}, "Loss::|run_Loss$", "adjoint[offset[c] + t * stride[c]] = gradient", {}),
    Match("loss sum", {"losses": 1}, "LossSum", "sum += losses[i];", {}),
    Match("update", {"parameters": 1}, "Update", "const float m = moment1[i]", {}, "loop"),
    Match(
        "update",
        {"passes over pairs of gradients": 1, "pairs of gradients added": 5},
        "probe_add_gradients_5",
        "sums[i] = sum;",
        {},
        "loop",
        trips=2,
    ),
    Match("weight rows", {"weights": 1}, "WeightRows", "to[t * step] = from[t * stride];", {}),
    Match("weight rows", {"rows of a column": 1}, "WeightRows", "const unsigned first = at < begin ? begin - at", {}, way="both"),
    Match("weight rows", {"columns of the target": 1}, "WeightRows", "if (at + count * tiles <= begin || at >= end)", {}, way="shortest"),
)
UNMATCHED: Final[Mapping[tuple[str, str], str]] = {
    ("source gradient", "sums of a sweep"): "the compiler unrolled it",
    ("source gradient", "sweeps over deltas"): "its instructions are spread over the calls that choose the number of samples",
    **{
        (vertex, name): "the compiled loop over samples also contains the single neuron and the set-up of the loop over pairs"
        for vertex in ("forward", "readout forward", "backward", "readout backward")
        for name in ("samples", "equations of a neuron alone")
    },
    ("relay windows", "numbers of ids compared"): "this program requests no further windows",
    ("source gradient", "samples"): "this program has no such loop: the trips of its other loops include the samples",
    ("loss", "classes"): "it consists of three loops that call exp of the C library",
    ("relay windows", "pieces joined"): "its code is in pieces between three inner loops and two branches",
}
"""Loops of W1 that were not compared, and the reasons."""


# ---- the cost model ----------------------------------------------------------------------------------------------------------


def loops_of(program: StepProgram) -> dict[str, tuple[Loop, ...]]:
    """Return the loops of the vertices of `program`, W1, by their names in :data:`MATCHES`."""
    network = describe(program)
    costs = network_costs(network)
    hidden, readout = network.layers
    links = [BlockLink(i, link, False, False, False, None) for i, link in enumerate(hidden.incoming)]
    values = replace(links[0], link=replace(links[0].link, source=replace(links[0].link.source, kind="values")))
    forward, backward = costs[f"forward.{hidden.id}"], costs[f"backward.{hidden.id}"]
    return {
        "forward": forward_loops(forward, links),
        "backward": backward_loops(backward, links, [], 0),
        "forward of values": tuple(read_loops(forward, values)),
        "backward of values": tuple(read_loops(backward, values)),
        "readout forward": forward_loops(costs[f"forward.{readout.id}"], []),
        "readout backward": backward_loops(costs[f"backward.{readout.id}"], [], [], 0),
        "source gradient": source_loops(costs[f"source_gradient.{hidden.id}"], [(link, None) for link in hidden.outgoing]),
        "relay compact": compact_loops(costs["relay_compact"]),
        "relay windows": window_loops(costs["relay_windows"], bits=False),
        "relay bits": bit_loops(costs["relay_bits"]),
        "loss scores": loss_scores(costs, network.loss).loops,
        "loss": sample_loss(costs, network.loss).loops,
        "loss sum": loss_sum(costs).loops,
        "update": update(costs, 2).loops,
        "weight rows": weight_rows(costs).loops,
    }


def cycles_of(match: Match, model_loops: Mapping[str, tuple[Loop, ...]]) -> float:
    """Return the cycles of the trips of `match` in the cost model; KeyError if it has no such loop."""
    by_name = {loop.name: loop for loop in model_loops[match.vertex]}

    def cycles(amounts: Mapping[str, int]) -> float:
        return float(sum(trips * by_name[name].cycles.value(amounts) for name, trips in match.loops.items()))

    return (cycles(_FOUR) - cycles(_TWO)) / 2 if match.way == "more pairs" else cycles(match.amounts)


# ---- the machine code --------------------------------------------------------------------------------------------------------


def compile_codelets(folder: Path, program: StepProgram) -> tuple[str, dict[str, list[Instruction]]]:
    """Emit and compile W1 and the probes; return the compiled source and the instructions of each function."""
    case = benchmark("w1")
    plan = make_plan(program, load_target("gc200"), steps=case.steps, batch=case.batch, activity=by_buffer(program, case.activity))
    emit_poplar(program, plan, folder / "project")
    unit, code = folder / "unit.cpp", folder / "unit.o"
    unit.write_text(text := with_callers((folder / "project" / "codelets.cpp").read_text(), (STAND_INS / "probes.cpp").read_text()))
    subprocess.run([f"{COMPILER}g++", *FLAGS, f"-I{STAND_INS}", "-c", unit, "-o", code], check=True)
    listing = [f"{COMPILER}objdump", "-dlC", "--no-show-raw-insn", "-M", "no-aliases", str(code)]
    machine_code = subprocess.run(listing, check=True, capture_output=True, text=True).stdout
    return text, parse(machine_code, unit.name)


def with_callers(codelets: str, probes: str) -> str:
    """Return both sources, and for each vertex class a function that calls its codelet, so that the compiler emits it."""
    callers = []
    for name, kind in re.findall(r"^class (\w+) : public poplar::(\w+)", codelets, re.MULTILINE):
        multi = kind == "MultiVertex"
        takes, gives = (", unsigned worker", "worker") if multi else ("", "")
        callers.append(f'extern "C" bool run_{name}({name} &vertex{takes}) {{ return vertex.compute({gives}); }}')
    return "\n".join((codelets, probes, *callers, ""))


def find_loop(match: Match, source: str, code: Mapping[str, list[Instruction]]) -> CodeLoop | None:
    """Return the smallest loop with instructions of a line that has the text of `match`, if its trips can be counted."""
    lines = {number for number, line in enumerate(source.splitlines(), 1) if match.text in line}
    if not lines:
        raise ValueError(f"no line of the codelets has the text {match.text!r}")
    functions = [name for name in code if re.search(match.function, name.split("(")[0] if name.startswith("probe") else name)]
    fits = [loop for name in functions for loop in loops(name, code[name]) if loop.lines & lines and loop.countable]
    return min(fits, key=lambda loop: sum(map(len, loop.blocks.values())), default=None)


def weigher(paired: Paired) -> dict[str, float]:
    """Return the weight of each kind of instruction: 0.5 if an IPU executes it for two floats at once, otherwise 1.

    The weight of divisions and square roots (kind ``slow``) is multiplied by 2 :data:`SLOW`.
    """
    arithmetic = 1.0 if paired == "no" else 0.5
    moved = 0.5 if paired in ("all", "loop") else 1.0
    other, slow = 0.5 if paired == "loop" else 1.0, 2 * SLOW if paired == "no" else SLOW
    return {"arithmetic": arithmetic, "moved": moved, "other": other, "slow": slow}


def kind_of(instruction: Instruction) -> str:
    name = instruction.name
    if name.startswith(("fdiv", "fsqrt")):
        return "slow"
    return "moved" if name in ("flw", "fsw") else "arithmetic" if name.startswith("f") and name != "fence" else "other"


def row_of(match: Match, model_loops: Mapping[str, tuple[Loop, ...]], source: str, code: Mapping[str, list[Instruction]]) -> Row | None:
    if (loop := find_loop(match, source, code)) is None:
        return None
    weights = weigher(match.paired)
    plain = loop.trip()
    paired = loop.trip(lambda i: weights[kind_of(i)])
    if match.way == "more pairs":
        fewer = row_of(replace(match, function=match.function.replace("_4", "_2"), way="both"), model_loops, source, code)
        if fewer is None:
            return None
        each = (plain[0] - fewer.shortest) / 2
        return Row(match, cycles_of(match, model_loops), each, each, (paired[0] - fewer.paired) / 2, loop.calls)
    ends = {"both": plain, "shortest": (plain[0],) * 2, "longest": (plain[1],) * 2}[match.way]
    two = {"both": sum(paired) / 2, "shortest": paired[0], "longest": paired[1]}[match.way]
    return Row(match, cycles_of(match, model_loops), match.trips * ends[0], match.trips * ends[1], match.trips * two, loop.calls)


# ---- the table ---------------------------------------------------------------------------------------------------------------


def table(rows: Iterable[Row]) -> Iterator[str]:
    yield "| vertex | loop | coefficient, cycles per trip | RISC-V, instructions per trip | ratio | in pairs | ratio |"
    yield "|---|---|---|---|---|---|---|"
    for row in rows:
        names = " + ".join(f"{trips} x {name}" if trips > 1 else name for name, trips in row.match.loops.items())
        note = f" ({row.match.note})" if row.match.note else ""
        ways = f"{row.shortest:g}" if row.shortest == row.longest else f"{row.shortest:g} to {row.longest:g}"
        calls = f" + {row.calls} call{'s' if row.calls > 1 else ''}" if row.calls else ""
        cells = (f"{row.cycles:g}", ways + calls, f"{row.counted / row.cycles:.2f}", f"{row.paired:g}", f"{row.paired / row.cycles:.2f}")
        yield f"| {row.match.vertex} | {names}{note} | {' | '.join(cells)} |"


def summary(rows: Sequence[Row]) -> str:
    plain, paired = ([getattr(row, name) / row.cycles for row in rows] for name in ("counted", "paired"))
    near = sum(abs(math.log(r)) <= math.log(1.5) for r in paired)
    return (
        f"{len(rows)} comparisons. Instructions over cycles: {min(plain):.2f} to {max(plain):.2f}, geometric mean {_mean(plain):.2f}; "
        f"in pairs {min(paired):.2f} to {max(paired):.2f}, geometric mean {_mean(paired):.2f}, {near} of {len(rows)} within 1.5 times."
    )


def _mean(ratios: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def without_match(model_loops: Mapping[str, tuple[Loop, ...]], rows: Iterable[Row]) -> Iterator[str]:
    """Yield a line for each loop of W1 that is not in the table, with the reason."""
    compared = {(row.match.vertex, name) for row in rows for name in row.match.loops}
    for vertex, all_loops in model_loops.items():
        for name in dict.fromkeys(loop.name for loop in all_loops):
            if (vertex, name) not in compared and not vertex.endswith("of values"):
                yield f"- {vertex}: {name}: {UNMATCHED.get((vertex, name), 'not identified in the machine code')}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the tables to docs/explanation/calibration.md")
    arguments = parser.parse_args()
    program = benchmark("w1").program()
    model_loops = loops_of(program)
    with tempfile.TemporaryDirectory() as folder:
        source, code = compile_codelets(Path(folder), program)
    rows = []
    for match in MATCHES:
        if (row := row_of(match, model_loops, source, code)) is None:
            raise SystemExit(f"{match.vertex}, {', '.join(match.loops)}: no loop of {match.function} has instructions of {match.text!r}")
        rows.append(row)
    reasons = ("Loops that were not compared, with the reasons:", "", *without_match(model_loops, rows))
    text = "\n".join((*table(rows), "", summary(rows), "", *reasons))
    print(text)
    if arguments.write:
        page = PAGE.read_text()
        before, after = page[: page.index(BEGIN) + len(BEGIN)], page[page.index(END) :]
        PAGE.write_text(f"{before}\n\n{text}\n\n{after}")


if __name__ == "__main__":
    main()
