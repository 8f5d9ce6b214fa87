"""Find natural loops in disassembled code (output of ``objdump -dl``), with the instructions of a trip and their source lines.

A basic block ends at a branch or before the target of one. An edge to a block that dominates the edge's source closes a natural loop: the
loop contains that block, and all blocks from which the edge can be reached without passing the block. Instructions of inner loops are not
counted in an outer loop.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeAlias

import networkx as nx

Graph: TypeAlias = "nx.DiGraph[int]"
"""Control-flow graph; its nodes are the addresses of blocks."""

_FUNCTION: Final = re.compile(r"^[0-9a-f]+ <(.+)>:$")
_LINE: Final = re.compile(r"^(/\S+):(\d+)(?: \(discriminator \d+\))?$")
_INSTRUCTION: Final = re.compile(r"^\s+([0-9a-f]+):\s+(\S+)\s*(.*)$")
_TARGET: Final = re.compile(r"\b([0-9a-f]+) <")
_BRANCHES: Final = frozenset(("beq", "bne", "blt", "bge", "bltu", "bgeu"))


@dataclass(frozen=True)
class Instruction:
    """One instruction: its address, mnemonic, operands as text, and source line (0: unknown)."""

    address: int
    name: str
    operands: str
    line: int

    @property
    def branches(self) -> bool:
        return self.name in _BRANCHES

    @property
    def jumps(self) -> bool:
        """Whether the instruction is an unconditional jump, but not a call."""
        return self.name in ("jal", "jalr") and self.operands.split(",")[0].strip() == "zero"

    @property
    def calls(self) -> bool:
        return self.name in ("jal", "jalr") and not self.jumps

    @property
    def target(self) -> int | None:
        address = _TARGET.search(self.operands) if self.branches or self.jumps else None
        return int(address.group(1), 16) if address else None


@dataclass(frozen=True)
class CodeLoop:
    """A natural loop."""

    function: str
    """The function that contains it, as the disassembler writes its name."""
    blocks: Mapping[int, tuple[Instruction, ...]]
    """Instructions that are in no inner loop, by the first address of their block."""
    edges: tuple[tuple[int, int], ...]
    """Edges between blocks of the loop, except those to `head`; an inner loop is one block, without instructions, at its head."""
    head: int
    """The first block of a trip."""
    latches: tuple[int, ...]
    """Blocks with edges back to `head`."""

    @property
    def lines(self) -> frozenset[int]:
        return frozenset(i.line for block in self.blocks.values() for i in block)

    @property
    def calls(self) -> int:
        return sum(i.calls for block in self.blocks.values() for i in block)

    @property
    def countable(self) -> bool:
        """Whether a trip has finitely many paths: the loop contains no cycle with several entries, which is not a natural loop."""
        return bool(nx.is_directed_acyclic_graph(nx.DiGraph(self.edges)))

    def trip(self, weigh: Callable[[Instruction], float] = lambda _: 1.0) -> tuple[float, float]:
        """Return the smallest and the largest weight of a path through a trip."""
        weights = {block: sum(map(weigh, code)) for block, code in self.blocks.items()}
        graph = nx.DiGraph(self.edges)
        graph.add_node(self.head)
        least, most = {self.head: weights[self.head]}, {self.head: weights[self.head]}
        for block in nx.topological_sort(graph):
            before = [b for b in graph.predecessors(block) if b in least]
            if block == self.head or not before:
                continue
            least[block] = min(least[b] for b in before) + weights[block]
            most[block] = max(most[b] for b in before) + weights[block]
        return min(least[b] for b in self.latches), max(most[b] for b in self.latches)


def parse(text: str, source: str = "") -> dict[str, list[Instruction]]:
    """Parse the output of ``objdump -dl --no-show-raw-insn -M no-aliases`` into the instructions of each function.

    Lines of files whose name does not end in `source` count as unknown. Local labels (names that begin with a dot) do not start a function.
    """
    functions: dict[str, list[Instruction]] = {}
    here: list[Instruction] = []
    line = 0
    for row in text.splitlines():
        if (named := _FUNCTION.match(row)) and not named.group(1).startswith("."):
            here, line = functions.setdefault(named.group(1), []), 0
        elif placed := _LINE.match(row):
            line = int(placed.group(2)) if placed.group(1).endswith(source) else 0
        elif instruction := _INSTRUCTION.match(row):
            here.append(Instruction(int(instruction.group(1), 16), instruction.group(2), instruction.group(3), line))
    return functions


def loops(function: str, code: Sequence[Instruction]) -> Iterator[CodeLoop]:
    """Yield the natural loops of a function; unreachable code is ignored."""
    if not code:
        return
    blocks, graph = _blocks(code)
    start = code[0].address
    reached = graph.subgraph({start} | nx.descendants(graph, start))
    dominators = nx.DiGraph((above, block) for block, above in nx.immediate_dominators(reached, start).items() if above is not None)
    bodies: dict[int, set[int]] = {}
    latches: dict[int, list[int]] = {}
    for source, target in reached.edges:
        if nx.has_path(dominators, target, source):
            without_head = reached.subgraph(set(reached) - {target})
            inside = {source} | nx.ancestors(without_head, source) if source != target else set()
            bodies.setdefault(target, {target}).update(inside)
            latches.setdefault(target, []).append(source)
    for head, body in bodies.items():
        yield _loop(function, blocks, reached, head, body, latches[head], bodies)


def _blocks(code: Sequence[Instruction]) -> tuple[dict[int, tuple[Instruction, ...]], Graph]:
    inside = {i.address for i in code}
    begins = {code[0].address} | {i.target for i in code if i.target in inside}
    begins |= {after.address for i, after in pairwise(code) if i.branches or i.jumps}
    blocks: dict[int, list[Instruction]] = {}
    at = code[0].address
    for instruction in code:
        at = instruction.address if instruction.address in begins else at
        blocks.setdefault(at, []).append(instruction)
    graph: Graph = nx.DiGraph()
    graph.add_nodes_from(blocks)
    order = sorted(blocks)
    for block, following in zip(order, [*order[1:], None], strict=True):
        last = blocks[block][-1]
        if last.target in inside:
            graph.add_edge(block, last.target)
        if following is not None and not last.jumps:
            graph.add_edge(block, following)
    return {block: tuple(instructions) for block, instructions in blocks.items()}, graph


def _loop(
    function: str,
    blocks: Mapping[int, tuple[Instruction, ...]],
    graph: Graph,
    head: int,
    body: Collection[int],
    latches: Iterable[int],
    bodies: Mapping[int, set[int]],
) -> CodeLoop:
    inner = {h: inside for h, inside in bodies.items() if h != head and h in body and inside < set(body)}
    outermost = {h: inside for h, inside in inner.items() if not any(h in other and h != o for o, other in inner.items())}
    place = {block: next((h for h, inside in outermost.items() if block in inside), block) for block in body}
    own_blocks = {p: () if p in outermost else blocks[p] for p in sorted(set(place.values()))}
    edges = {(place[a], place[b]) for a, b in graph.edges if a in body and b in body and b != head and place[a] != place[b]}
    ends = tuple(sorted({place[latch] for latch in latches}))
    return CodeLoop(function, own_blocks, tuple(sorted(edges)), head, ends)
