"""Loops of the vertices of relays.

Their amounts are:

* ``pieces`` (parts of the masks of a sample) that a worker searches or whose ids it merges; in a piece, ``runs`` of words, ``groups`` of
  four words, ``singles`` (mask units, of one or two words, outside of groups), ``hits`` (groups with a bit) and ``ids`` found;
* ``counts``: how often a worker reads the number of ids in another piece of its sample;
* ``scores`` of spikes, from which a random choice is made; predictions omit them, because only a run decides whether the choice is random;
* ``lists`` of samples, or parts of lists; ``words`` that are read or copied, in ``runs``;
* ``numbers`` that a request for further windows compares.
"""

from __future__ import annotations

from functools import lru_cache

from snnc.compiler.tiles.vertices.cost import CodeletCost
from snnc.compiler.tiles.vertices.loops import Amount, Loop, as_formula, looping


@lru_cache(maxsize=64)
def compact_loops(cost: CodeletCost) -> tuple[Loop, ...]:
    """Return the loops of a search for spikes in masks."""
    return (
        *looping("pieces of masks", Amount("pieces"), cost.sample),
        *looping("runs of mask words", Amount("runs"), cost.row),
        *looping("groups of four mask words", Amount("groups"), cost.word),
        *looping("single mask units", Amount("singles"), cost.single),
        *looping("groups with a bit", Amount("hits"), cost.word_hit),
        *looping("ids found", Amount("ids"), cost.id),
    )


@lru_cache(maxsize=64)
def window_loops(cost: CodeletCost, *, bits: bool, joins: bool = True, limited: bool = False) -> tuple[Loop, ...]:
    """Return the loops of a vertex that writes first windows of ids; with `joins`, it also stores the ids found, as ids or `bits`."""
    loops = [
        *looping("lists of ids", Amount("lists"), cost.sample, "lists"),
        *looping("words of ids copied", Amount("words"), cost.element, "copied"),
        *looping("runs of words copied", Amount("runs"), cost.run, "copied"),
        *_request(cost),
    ]
    if joins:
        loops += looping("pieces joined", Amount("pieces"), cost.row, "joined")
        loops += looping("counts of pieces", Amount("counts"), cost.value, "joined")
        loops += looping("words of ids joined", Amount("words"), cost.word, "joined")
    if limited:  # a limit on the spikes sent per step is set at run time
        loops += looping("scores of spikes", Amount("scores"), cost.search, "joined")
    if joins and bits:
        loops += looping("ids converted to bits", Amount("ids"), cost.lookup, "joined")
        loops += looping("words of bits stored", Amount("bit_words"), cost.table_row, "joined")
    return tuple(loops)


@lru_cache(maxsize=64)
def bit_loops(cost: CodeletCost) -> tuple[Loop, ...]:
    """Return the loops of a vertex that converts the bits of a step to ids."""
    return (
        *looping("lists of ids", Amount("lists"), cost.sample, "lists"),
        *looping("words whose bits are counted", Amount("words"), cost.value, "counted"),
        *looping("words of bits read", Amount("words"), cost.word, "copied"),
        *looping("ids listed", Amount("ids"), cost.id, "copied"),
        *_request(cost),
    )


@lru_cache(maxsize=64)
def value_loops(cost: CodeletCost, *, joins: bool) -> tuple[Loop, ...]:
    """Return the loops of a vertex that writes windows of values; with `joins`, it also stores the values of the last step."""
    loops = [*looping("values shown", Amount("values"), cost.element, "copied")]
    if joins:
        loops += looping("rows of values stored", Amount("rows"), cost.row, "joined")
        loops += looping("values stored", Amount("values"), cost.value, "joined")
    return tuple(loops)


@lru_cache(maxsize=64)
def next_window_loops(cost: CodeletCost) -> tuple[Loop, ...]:
    """Return the loops of a vertex that writes further windows of ids."""
    return (
        *looping("samples", Amount("samples"), cost.sample),
        *looping("ids copied", Amount("ids"), cost.element, "copied"),
    )


@lru_cache(maxsize=64)
def boundary_loops(cost: CodeletCost) -> tuple[Loop, ...]:
    """Return the loops of a copy of rows of values to a boundary of segments, or back."""
    return (
        *looping("rows", Amount("rows"), cost.row, "copied"),
        *looping("words copied", Amount("words"), cost.element, "copied"),
    )


@lru_cache(maxsize=64)
def boundary_event_loops(cost: CodeletCost) -> tuple[Loop, ...]:
    """Return the loops of a copy of lists of ids to a boundary of segments, or back."""
    return (
        *looping("steps", Amount("steps"), cost.row),
        *looping("lists of ids", Amount("lists"), cost.sample, "lists"),
        *looping("words of ids copied", Amount("words"), cost.element, "lists"),
    )


def _request(cost: CodeletCost) -> tuple[Loop, ...]:
    return (
        *looping("numbers of ids compared", Amount("numbers"), cost.choice, "request"),
        *looping("remaining windows", as_formula(1), cost.single, "request"),
    )
