"""Lifetimes of a tile's data: the stages of a training step, and the stages in which each kind of data is live.

A variable is live from a complete overwrite (or ``WriteUndef``) to its last read, or always if the host accesses it;
docs/decisions/0013-memory-over-time.md lists the lifetimes of the emitted program's variables.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import numpy as np

from snnc.compiler.tiles.blocks.grouping import Ints

LiveBytes: TypeAlias = Mapping[tuple[str, str], Any]
"""Bytes by (category, lifetime), each a number or an array."""

# The stages: parts of a training step, and supersteps in which other data are live than in the rest of their part.
FORWARD, FORWARD_NEURONS = "forward", "forward: neurons"
SCORES, LOSS = "loss: scores", "loss"
RECOMPUTE, RECOMPUTE_NEURONS = "recompute", "recompute: neurons"
BACKWARD, BACKWARD_NEURONS, REDUCTION = "backward", "backward: neurons", "backward: reduction"
PRIVATE_SUMS, SHARED_SUMS, OPTIMISER = "update: private gradients", "update: shared gradients", "update: optimiser"
# Shared parameters ("numbers" in reports), such as those of indexed connections: several neurons read each, so tiles store copies.
REPLICAS, SHARED = "update: replicas", "update: shared numbers"
PACKED, COPIES = "update: weight rows packed", "update: weight copies"

_INFERENCE: Final = (FORWARD, FORWARD_NEURONS)
_RECOMPUTE: Final = (RECOMPUTE, RECOMPUTE_NEURONS)
_BACKWARD: Final = (BACKWARD, BACKWARD_NEURONS)
_BACK: Final = (*_RECOMPUTE, *_BACKWARD, REDUCTION)
SEQUENCE: Final = (*_INFERENCE, SCORES, LOSS, *_BACK)
"""The stages before the update."""
STAGES: Final = (*SEQUENCE, PRIVATE_SUMS, SHARED_SUMS, OPTIMISER, REPLICAS, SHARED, PACKED, COPIES)
"""The stages of a training step, in order; the supersteps of a stage have the same live data."""

LIVES: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        name: frozenset(stages)
        for name, stages in {
            "always": STAGES,
            "sequence": SEQUENCE,
            "forward": (*_INFERENCE, *_RECOMPUTE),
            "found ids": (FORWARD, RECOMPUTE),
            "windows": (*_INFERENCE, *_RECOMPUTE, *_BACKWARD),
            "gradient windows": (*_BACKWARD, REDUCTION),
            "returned windows": _BACKWARD,
            "partial sums": (*_RECOMPUTE, BACKWARD, REDUCTION),
            "currents": (FORWARD_NEURONS, RECOMPUTE_NEURONS),
            "scores": (SCORES, LOSS),
            "loss": (LOSS,),
            "record adjoints": (LOSS, *_BACK),
            "backward": _BACK,
            "deltas": (BACKWARD_NEURONS,),
            "private gradients": (*_BACK, PRIVATE_SUMS),
            "shared gradients": (*_BACK, PRIVATE_SUMS, SHARED_SUMS),
            "sums of shared gradients": (SHARED_SUMS, OPTIMISER),
            "gradients": (*_BACK, PRIVATE_SUMS, SHARED_SUMS, OPTIMISER),
            "packed rows": (PACKED, COPIES),
            "copies of weights": (*SEQUENCE, COPIES),
            "copies of numbers": (*SEQUENCE, SHARED, PACKED, COPIES),
            "copies read forward": (*_INFERENCE, SHARED, PACKED, COPIES),
        }.items()
    }
)
"""Stages in which data are live, by lifetime."""


def stages_of(*, training: bool, segment: int) -> tuple[str, ...]:
    """Return the stages of a step: those of recomputation only if `segment`, the length of a segment, is not 0."""
    return tuple(s for s in STAGES if segment or s not in _RECOMPUTE) if training else _INFERENCE


def stage_of(part: str, name: str) -> str:
    """Return the stage of a superstep: its part of the step, or a separate stage if other data are live in the superstep."""
    if name in STAGES:
        return name
    if part in (FORWARD, RECOMPUTE) and name.endswith("neurons"):
        return f"{part}: neurons"
    if part == "update":
        return OPTIMISER
    # Supersteps of further windows add to gradients after the superstep of neurons, and still read its deltas.
    return BACKWARD_NEURONS if part == "backward" and name.endswith("windows") else part


def by_stage(held: LiveBytes, stages: tuple[str, ...]) -> dict[str, Any]:
    """Return the live bytes of all categories in each stage."""
    lives: dict[str, Any] = {}
    for (_, life), size in held.items():
        lives[life] = lives.get(life, 0) + size
    return {stage: sum((size for life, size in lives.items() if stage in LIVES[life]), start=np.int64(0)) for stage in stages}


def peak_bytes(held: LiveBytes, stages: tuple[str, ...], more: Mapping[str, Any] | None = None) -> Ints:
    """Return the maximum of live bytes over all stages, with the additional bytes of `more` in some stages."""
    peak: Ints = np.max(np.stack(np.broadcast_arrays(*_all(held, stages, more).values())), axis=0)
    return peak


def fullest(held: LiveBytes, stages: tuple[str, ...], more: Mapping[str, Any] | None = None) -> tuple[str, dict[str, int]]:
    """Return the stage with the most live bytes (numbers, not arrays), and these bytes by category; `more` counts as "exchange"."""
    sums = _all(held, stages, more)
    stage = max(stages, key=lambda each: int(sums[each]))
    live: dict[str, int] = {}
    for (category, life), size in held.items():
        if stage in LIVES[life]:
            live[category] = live.get(category, 0) + int(size)
    live["exchange"] = int((more or {}).get(stage, 0))
    return stage, live


def _all(held: LiveBytes, stages: tuple[str, ...], more: Mapping[str, Any] | None) -> dict[str, Any]:
    return {stage: size + (more or {}).get(stage, 0) for stage, size in by_stage(held, stages).items()}
