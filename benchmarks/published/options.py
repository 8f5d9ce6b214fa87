"""Constants of the cost model of the published program, and options for what its source code does not determine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

CodeGeneration: TypeAlias = Literal["naive", "ideal", "mean"]
Surrogate: TypeAlias = Literal["one tile", "every tile"]

CONTROL: Final = 30.0
"""Tile cycles of a program step without exchange (assumed); the rest of ``Target.superstep_cycles`` sets up an exchange."""
SUPERVISOR: Final = 11.0
"""Tile cycles of a PopLibs vertex that uses all six workers, in addition to six times the cycles of a worker (PopLibs performance
estimates)."""
PROLOGUE: Final = 29.0
"""Worker cycles before the loop of a PopLibs fp32 elementwise vertex."""
VECTOR: Final = 3.0
"""Worker cycles for two fp32 values of an add or mul."""
LOCAL_COPY: Final = 288.0
"""Tile cycles of a copy within a tile, in addition to those that its bytes take (:data:`LOCAL_COPY_BYTES`)."""
LOCAL_COPY_BYTES: Final = 8.0
"""Bytes per tile cycle of a copy within a tile."""
DIVIDE: Final = 10.0
"""Worker cycles of a division of one or two fp32 values (PopLibs gives 10 for two)."""
LINEAR_BYTES: Final = 128
"""Minimum bytes per tile of a tensor that PopLibs maps linearly (``poputil::mapTensorLinearly``)."""
HOST_BYTES_PER_SECOND: Final = 8e9
"""Bandwidth from host to IPU in Poplar's model."""
WORKER_SHARE: Final = 64
"""Desired number of neurons that one worker compacts (``desired_per_worker_size`` of ``poplar_code_stateBasedReset.cpp``)."""


@dataclass(frozen=True)
class PublishedOptions:
    """Options of the model of the published program."""

    fragment_cycles: float | None = None
    """Cycles of an exchange fragment (a contiguous piece of memory), in addition to its bytes; None: the target's. Public sources give 6
    to 20."""
    merge_copies: bool = True
    """Whether the vendor's compiler merges adjacent copies into one exchange; not known."""
    code: CodeGeneration = "mean"
    """Model of compiled loops: ``"naive"`` issues every operation separately, ``"ideal"`` pairs memory with arithmetic operations and has
    loops without overhead, ``"mean"`` is the mean of both."""
    surrogate: Surrogate = "one tile"
    """Where the surrogate is computed: ``"one tile"``: by one worker of one tile for each layer and sample, as in the logged runs; ``"every
    tile"``: by each tile for its own neurons, as in the program of 2022-09-17 and later."""


@dataclass(frozen=True)
class LoopCost:
    """Numbers of operations in one iteration of a loop, which any compiler has to emit.

    A worker issues one bundle per cycle: a memory, branch or integer operation together with a floating-point one. Naive code issues every
    operation separately, and a branch back to the start of the loop. Ideal code overlaps addresses and arithmetic with memory operations,
    and its loops have no overhead.
    """

    loads: float = 0
    stores: float = 0
    arithmetic: float = 0
    integer: float = 0
    branches: float = 0

    def cycles(self, code: CodeGeneration, *, loops: bool = True) -> float:
        """Return the worker cycles of an iteration; `loops` False omits the branch back."""
        naive = self.loads + self.stores + self.arithmetic + self.integer + self.branches + loops
        ideal = max(self.loads + self.stores + self.branches, self.arithmetic)
        return {"naive": naive, "ideal": ideal, "mean": (naive + ideal) / 2}[code]


def prologue(fields: int, code: CodeGeneration) -> float:
    """Return the worker cycles of a vertex outside its loops: it loads each field; naive code also checks or dereferences each."""
    return {"naive": 2.0 * fields, "ideal": 1.0 * fields, "mean": 1.5 * fields}[code]


# Loops of custom_codelet.cpp (commit 2b0fe90), counted from their loads, arithmetic and stores.
CURRENT: Final = LoopCost(loads=2, arithmetic=1, integer=1)
"""Forward: an id, two weights, one vector add."""
CURRENT_WIDE: Final = LoopCost(loads=2, arithmetic=1, integer=3)
"""Forward, for rows of more than one vector."""
NEURON: Final = LoopCost(loads=5, stores=1, arithmetic=3, branches=1)
"""Decay, reset and current of a neuron."""
THRESHOLDS: Final = LoopCost(loads=3, stores=2, arithmetic=2, branches=2)
"""Set the two flags of a neuron and sample, in a vertex of their own."""
SCAN: Final = LoopCost(loads=1, integer=1, branches=1)
"""Test a flag."""
FOUND: Final = LoopCost(stores=1, integer=1, branches=1)
"""Store the id of a flag that is set."""
CHUNK: Final = LoopCost(loads=1, integer=3, branches=2)
"""Begin to copy the ids that one worker or tile found."""
MOVE: Final = LoopCost(loads=1, stores=1, integer=1)
"""Copy an id."""
SLOPE: Final = LoopCost(loads=5, stores=1, arithmetic=5 + DIVIDE, integer=2)
"""Surrogate: id, U, threshold, gradient, dU; single precision (see docs/explanation/calibration.md)."""
SLOPE_SCAN: Final = LoopCost(loads=1, integer=1, branches=1)
"""Surrogate on every tile: compare an id with the tile's neurons."""
SAMPLE: Final = LoopCost(loads=2, integer=3, branches=1)
"""Weight gradient: begin a sample."""
OUTER: Final = LoopCost(loads=2, stores=1, arithmetic=1, integer=1)
"""Weight gradient, for each vector of the row: an id, two gradients, one vector add."""
INNER: Final = LoopCost(loads=2, stores=1, arithmetic=2, integer=1)
"""Input gradient: an id, two weights, a product and its sum."""
INNER_WIDE: Final = LoopCost(loads=2, arithmetic=2, integer=1)
"""Input gradient: a further vector of the row."""
PARTIAL: Final = LoopCost(loads=1, arithmetic=1)
"""Add a partial sum."""
ADAM_VECTOR: Final = 10.0 + 2 * DIVIDE + 7.0
"""Adam on two weights: 10 elementwise operations, a root and a division, 4 loads and 3 stores."""
SGD_VECTOR: Final = 5.0
"""SGD on two weights: scale, subtract, 2 loads, 1 store."""
