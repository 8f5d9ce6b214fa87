"""Costs of the codelets of the emitted Poplar program: integers shared by the prediction and the printed codelets.

A codelet counts its own worker cycles (``SNNC_COUNT_CYCLES``). Its description, a
:class:`~snnc.compiler.tiles.vertices.vertex_spec.VertexSpec`, has loops with trips and cycles per trip; the prediction evaluates them with
expected amounts, and the codelet counts by the same formulas::

    cycles = start + sum of trips x cycles per trip          (idle, and nothing else, when the vertex has no step)

A coefficient is the cycles of a trip of such a loop; its values are in :mod:`snnc.compiler.tiles.vertices.codelet_costs`, and the loops say
what it counts.

Columns of a block are processed in pairs (one 64-bit load), the last of an odd number alone. A *sweep* goes over a list once and keeps up
to :data:`EVENT_SWEEP` pairs (:data:`VALUE_SWEEP` of a value bus) of sums or deltas in registers, so a list takes
``sweeps = ceil(ceil(columns / 2) / EVENT_SWEEP)``. If the last sweep has pairs and a single column, these are stored in two places, which
costs `event_joined` cycles.

Each number counts the instructions of the loop as written in C++, one issue each: 64-bit loads and stores, ``f32v2`` arithmetic on two
floats, loads and stores that advance their pointer, one branch an iteration. Nothing is dual issued (a compiler's loop of load, load, add,
store takes 4 bundles for 2 floats: Poplar's tutorials and PopLibs). Equations run for two neurons of a sample at once, loaded and stored
one by one, because their places are not aligned to pairs; the last of an odd number runs alone. Starting a vertex additionally costs
``Target.vertex_start_cycles``; a tile cycle serves one of its six workers, so a tile takes 6 cycles for each worker cycle. Amounts of
vertices that all workers of a tile share (relays, updates, losses) are those of one worker.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from typing import Any, Final

EVENT_SWEEP: Final = 6
"""Pairs of columns that a sweep over events keeps in registers: 12 of the 14 that arithmetic has, and one pair of the row."""
VALUE_SWEEP: Final = 4
"""The same over values: 8 registers, and three pairs for the value, the row and the product."""
SAMPLE_SWEEP: Final = 5
"""Pairs of samples of a sweep over the targets' deltas: 10 registers, a pair for the weight and one for the deltas."""


SUMMANDS: Final = 5
"""Gradients that a pass adds to the sum: a pointer each, and two for the sum."""
WINDOWS_LEFT: Final = 20
"""Worker cycles in which a relay makes windows of the remaining events: one integer division."""


@dataclass(frozen=True)
class CodeletCost:
    """Worker cycles of one codelet: coefficients of its loops.

    A codelet uses the coefficients of its own loops, which name them; the others are 0.

    Attributes
    ----------
    start, idle
        A run with a step, besides its loops; a run without one.
    sample, sweep, swept_column
        A sample; a sweep over a list; a column whose sum or delta a sweep keeps in registers.
    event, event_vector, event_joined
        A spike in a sweep; a pair of its columns; the place where the last pair and a single column meet.
    row, product, dot
        A row of weights or of another array; a pair of its products; a product of a pair of deltas and weights.
    neuron, pair, window_test
        The equations of a neuron that runs alone, and of two at once; a test whether a neuron is within the gradient window.
    word, word_hit, id, element
        A word that is read; one with a bit set; an id that is found; a number that is copied or looked at.
    entry, entry_vector
        An entry of a window of partial products, and a pair of its columns.
    search
        A halving in a search.
    lookup, table_row, single, run
        Tables of indexed connections: an id or value that is looked up; a row that is traversed; a run of one value; another run.
    value, sample_value, choice, sample_choice
        A value that runs add up, and in source gradients a value of one sample; the same of maxima.
    """

    start: int = 0
    idle: int = 0
    sample: int = 0
    sweep: int = 0
    swept_column: int = 0
    event: int = 0
    event_vector: int = 0
    event_joined: int = 0
    row: int = 0
    product: int = 0
    unaligned: int = 0
    """A product of two samples that are not one aligned load, in addition to `product`."""
    dot: int = 0
    neuron: int = 0
    pair: int = 0
    word: int = 0
    word_hit: int = 0
    id: int = 0
    element: int = 0
    entry: int = 0
    entry_vector: int = 0
    search: int = 0
    window_test: int = 0
    lookup: int = 0
    table_row: int = 0
    single: int = 0
    run: int = 0
    value: int = 0
    sample_value: int = 0
    choice: int = 0
    sample_choice: int = 0
    narrow: int = 0
    """A float16 weight of a connection that is not dense: its conversion."""
    loops: tuple[tuple[str, int], ...] = ()
    """Loops over columns that it calls: name, instructions. A tile holds each once, for all callers."""

    def to_dict(self) -> dict[str, Any]:
        """Coefficients by name, and the loops."""
        return asdict(self)

    @cached_property
    def instructions(self) -> int:
        """Instructions in a tile's memory in addition to those of :attr:`loops`: those of each loop body once (docs/decisions/0012)."""
        names = [field.name for field in fields(self) if field.name != "loops"]
        return sum(getattr(self, name) for name in names if not (self.loops and name in OF_LOOPS))

    def calling(self, *loops: tuple[str, int]) -> CodeletCost:
        """The same with further loops."""
        return replace(self, loops=tuple(sorted({*self.loops, *loops})))

    def with_request(self) -> CodeletCost:
        """The same for a relay that computes the number of further windows for the remaining events: an integer division."""
        return replace(self, single=WINDOWS_LEFT)


OF_LOOPS: Final = frozenset(
    ("sweep", "swept_column", "event", "event_vector", "event_joined", "row", "product", "unaligned", "dot", "entry", "entry_vector")
)
"""Coefficients of loops over columns, which are counted separately."""


def column_pairs(columns: Any) -> Any:
    """Pairs of columns (or samples); the last of an odd number counts as one."""
    return (columns + 1) // 2


def column_sweeps(columns: Any, most: int) -> Any:
    """Sweeps over a list for a number of columns, `most` pairs in each."""
    return -(-column_pairs(columns) // most)


def joined_columns(columns: Any, most: int) -> Any:
    """1 where the last sweep has pairs and a single column, which are stored in two places, else 0."""
    return (columns % 2) * (column_pairs(columns) % most != 1)


def dot_sweeps(columns: Any) -> Any:
    """Runs of four, two and one columns into which a number of columns is cut."""
    return columns // 4 + columns % 4 // 2 + columns % 2
