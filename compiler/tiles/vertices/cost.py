"""Costs of the codelets of the emitted Poplar program: integers used by the prediction and by the printed codelets.

A codelet counts its own worker cycles (``SNNC_COUNT_CYCLES``) by the formulas with which the prediction evaluates its loops::

    cycles = start + sum of trips x cycles per trip          (or idle, in an iteration without a step for the vertex)

A coefficient is a number of cycles per trip of one of these loops, or a part of it.
:mod:`snnc.compiler.tiles.vertices.codelet_costs` counts the instructions of each loop as written in C++. It assumes that no two are
issued together: a compiler's loop of load, load, add, store takes 4 bundles for 2 floats (Poplar's tutorials and PopLibs).

Columns of a block are processed in pairs (one 64-bit load), and a last single column alone. A *sweep* traverses a list once and keeps up to
:data:`EVENT_SWEEP` pairs (:data:`VALUE_SWEEP` for a value bus) of sums or deltas in registers, so a list needs
``sweeps = ceil(ceil(columns / 2) / EVENT_SWEEP)``. If the last sweep has pairs and a single column, these are stored in two places, which
costs `event_joined` cycles. Equations are evaluated for two neurons of a sample at once, which are loaded and stored one by one, because
their addresses are not aligned to pairs. Starting a vertex costs another ``Target.vertex_start_cycles``. A tile issues the instructions of
its six workers in turn, so a worker cycle takes 6 tile cycles. If all workers share a vertex, its trips are those of the slowest worker.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Final

EVENT_SWEEP: Final = 6
"""Maximum number of pairs of columns in registers in a sweep over events: 12 of the 14 arithmetic registers, and one pair for the row."""
VALUE_SWEEP: Final = 4
"""Maximum number of pairs of columns in registers in a sweep over values: 8 registers, and 3 pairs for the value, row and product."""
SAMPLE_SWEEP: Final = 5
"""Maximum number of pairs of samples in registers in a sweep over deltas: 10 registers, a pair for the weight and one for the deltas."""


SUMMANDS: Final = 5
"""Maximum number of gradients that one pass adds to their sum; each needs a register for its address, and the sum needs two."""
WINDOWS_LEFT: Final = 20
"""Worker cycles to compute how many windows the remaining events need: one integer division."""


@dataclass(frozen=True)
class CodeletCost:
    """Worker cycles of one codelet: coefficients of its loops. A codelet uses the coefficients of its own loops; the others are 0.

    In vertices of blocks, each coefficient is the cost of the following. Other vertices use some names for other loops, which comments in
    :mod:`~snnc.compiler.tiles.vertices.codelet_costs` describe.

    * `start`, `idle`: a run of the vertex in an iteration with a step, in addition to its loops; a run in any other iteration;
    * `sample`, `sweep`, `swept_column`: a sample; a sweep over a list; a column whose sum or delta a sweep keeps in registers;
    * `event`, `event_vector`, `event_joined`: a spike in a sweep; a pair of its columns; storing pairs and a single column in two places;
    * `row`, `product`, `dot`: a row of weights or of another array; the products of a pair of its columns; two deltas times their weights;
    * `neuron`, `pair`: the equations of one neuron alone, and of two neurons at once;
    * `window_test`: a test whether a neuron is in the support of the surrogate;
    * `word`, `word_hit`, `id`, `element`: a word that is read; a word with a bit set; an id that is found; a value copied or compared;
    * `entry`, `entry_vector`: an entry of a window of partial products, and a pair of its columns;
    * `search`, `lookup`, `table_row`: a halving in a search; an id or value that is looked up in a table; a row of a table;
    * `single`, `run`, `value`: a run of one value; a longer run; a value of a run;
    * `sample_value`: in source gradients, the product of a value of a run for one sample;
    * `choice`, `sample_choice`: in max pooling, a value compared with the maximum; in source gradients, a chosen entry of one sample.
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
    """Further cycles of a product with two deltas that are not aligned, so that they need two loads."""
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
    """Conversion of a float16 weight of a connection that is not dense."""
    loops: tuple[tuple[str, int], ...] = ()
    """Shared loops that the codelet calls: (name, number of instructions). A tile stores each once for all callers."""

    @cached_property
    def instructions(self) -> int:
        """Number of instructions in a tile's memory, without :attr:`loops`; each loop body counts once (docs/decisions/0012)."""
        names = [field.name for field in fields(self) if field.name != "loops"]
        return sum(getattr(self, name) for name in names if not (self.loops and name in OF_LOOPS))

    def calling(self, *loops: tuple[str, int]) -> CodeletCost:
        """Return the same cost with further shared loops."""
        return replace(self, loops=tuple(sorted({*self.loops, *loops})))

    def with_request(self) -> CodeletCost:
        """Return the cost for a relay that also computes the number of further windows, with an integer division (`single`)."""
        return replace(self, single=WINDOWS_LEFT)


OF_LOOPS: Final = frozenset(
    ("sweep", "swept_column", "event", "event_vector", "event_joined", "row", "product", "unaligned", "dot", "entry", "entry_vector")
)
"""Coefficients of shared loops, which are counted separately."""


def column_pairs(columns: Any) -> Any:
    """Return the number of pairs of columns (or samples); a last single column counts as a pair."""
    return (columns + 1) // 2


def column_sweeps(columns: Any, most: int) -> Any:
    """Return the number of sweeps over a list, with up to `most` pairs of columns in each."""
    return -(-column_pairs(columns) // most)


def joined_columns(columns: Any, most: int) -> Any:
    """Return 1 where the last sweep has pairs and a single column, which are stored in two places, else 0."""
    return (columns % 2) * (column_pairs(columns) % most != 1)


def dot_sweeps(columns: Any) -> Any:
    """Return the number of runs of four, two and one columns into which `columns` are cut."""
    return columns // 4 + columns % 4 // 2 + columns % 2
