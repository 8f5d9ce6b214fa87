"""Vertices of relays, which store the spikes and values of sources and write windows for their targets.

A window contains the data of one step: a list of ids with a fixed capacity, or values. A bus is the set of readers that receive a step of a
source equally many iterations later; a relay writes one window per bus.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from snnc.compiler.tiles.vertices.boundary_vertices import BOUNDARY
from snnc.compiler.tiles.vertices.cost import CodeletCost
from snnc.compiler.tiles.vertices.loops import Amount, looping
from snnc.compiler.tiles.vertices.relay_loops import (
    bit_loops,
    boundary_event_loops,
    boundary_loops,
    compact_loops,
    next_window_loops,
    value_loops,
    window_loops,
)
from snnc.compiler.tiles.vertices.vertex_spec import Element, FieldKind, FieldSpec, VertexSpec, constant, many, one

SCORE: Final = 12
"""Instructions that compute the score of a spike, a hash that decides at random which spikes are kept: load, add, three multiplications,
five shifts and exclusive ors, compare, add."""
_COPY_MASK: Final = (
    many("input", "unsigned", "mask", "a bit for each neuron of a tile and sample", align=8),
    many("output", "unsigned", "copy", "copy of the masks, read in the next iteration", align=8),
    constant("count", "words"),
)
_COMPACT: Final = (
    one("input", "int", "k", "the iteration"),
    constant("interval", "iterations from one step to the next", "int"),
    constant("stage", "iteration in which the source runs step 0", "int"),
    constant("steps", "steps", "int"),
    constant("row", "mask units of a sample"),
    constant("skip", "mask words between the units of consecutive tiles"),
    many("input", "unsigned", "mask", "masks of the source"),
    many("input", "unsigned", "first", "the first neuron of each unit"),
    many("input", "unsigned", "pieces", "mask pieces that each worker searches"),
    many("output", "unsigned", "found_ids", "ids found by the workers"),
    many("output", "unsigned", "counts", "number of ids found, by worker and sample"),
)
_COMMON: Final = (
    one("input", "int", "k", "the iteration"),
    constant("interval", "iterations from one step to the next", "int"),
    constant("samples", "samples of the relay"),
    constant("before", "1 if a value before step 0 is stored, else 0"),
)
_JOINED_STEP: Final = (
    constant("stage", "iteration in which step 0 of the source is stored", "int"),
    constant("steps", "steps", "int"),
)
_SHOWN: Final = (
    constant("lag", "largest lag of the source's buses, in iterations", "int"),
    constant("before", "1 if a value before step 0 is stored, else 0"),
    constant("behind", "steps stored at a boundary", "int"),
)
_FOUND: Final = (
    many("input", "unsigned", "pieces", "mask pieces that each worker searched"),
    many("input", "unsigned", "found_ids", "ids found by the workers"),
    many("input", "unsigned", "counts", "number of ids found, by worker and sample"),
)


def id_type(width: int) -> Element:
    """Return the type of ids of a source of `width` values: 16 bits if these suffice."""
    return "unsigned short" if width <= 1 << 16 else "unsigned"


@dataclass(frozen=True)
class StoredSpikes:
    """The form in which relays store the spikes of a source."""

    ids: Element
    bits: bool = False
    """Whether relays store one bit per value instead of ids."""
    with_support: bool = False
    """Whether relays also store neurons that receive a gradient without a spike."""
    drops_support: bool = False
    """Whether a step may have more of these neurons than the store has room for."""
    limited: bool = False
    """Whether a limit on the spikes sent per step, and the key of the random choice among them, are set at run time."""


@dataclass(frozen=True)
class ShownWindow:
    """A window of a bus that a vertex writes in the forward or in the backward pass."""

    with_support: bool
    """Whether the window also contains neurons that receive a gradient without a spike (a window of the backward pass)."""
    may_continue: bool
    """Whether further windows may follow."""
    requesting_passes: int
    """Number of passes for which the vertex requests further windows: 0, 1, or 2 if windows of the forward and backward pass differ."""
    lost: bool
    """Whether the vertex counts spikes beyond the capacity (in mode exact: the further windows that they need)."""


def copy_mask(costs: Mapping[str, CodeletCost]) -> VertexSpec:
    """Return the vertex that copies the masks of a tile for relays that search them in the next iteration."""
    cost = costs["copy_mask"]
    return VertexSpec("copy_mask", _COPY_MASK, cost, tuple(looping("pairs of words", Amount("pairs"), cost.element)))


def relay_compact(costs: Mapping[str, CodeletCost], *, writes_iteration: bool) -> VertexSpec:
    """Return the vertex that searches masks for spikes and, with `writes_iteration`, writes the iteration for the next vertex."""
    iteration = (one("output", "int", "iteration", "the iteration"),) if writes_iteration else ()
    cost = costs["relay_compact"]
    return VertexSpec("relay_compact", (*_COMPACT, *iteration), cost, compact_loops(cost))


def relay_values(costs: Mapping[str, CodeletCost], buses: int, *, joins: bool) -> VertexSpec:
    """Return the vertex that writes the windows of `buses` buses of values; with `joins`, it first stores the values of the last step."""
    fields = [*_COMMON, *_offsets(buses), *(_JOINED_STEP if joins else ()), constant("width", "values per sample and step")]
    fields.append(many("inout" if joins else "input", "float", "store", "values of all steps"))
    if joins:
        fields += [
            constant("tiles", "tiles of the source"),
            constant("row", "maximum values per sample from one tile"),
            many("input", "unsigned", "first", "first neuron of each tile"),
            many("input", "float", "now", "values that the source sent"),
        ]
    fields += [many("output", "float", f"window{i}", "values of one step") for i in range(buses)]
    cost = costs["relay_values"]
    return VertexSpec("relay_values", tuple(fields), cost, value_loops(cost, joins=joins))


def relay_windows(
    costs: Mapping[str, CodeletCost], stored: StoredSpikes, windows: Sequence[ShownWindow], *, joins: bool, backward: bool
) -> VertexSpec:
    """Return the vertex that writes first windows of ids; with `joins`, it first stores the ids that workers found."""
    access: FieldKind = "inout" if joins else "input"
    fields = [*_COMMON, *_offsets(len(windows)), *(_JOINED_STEP if joins else ())]
    if stored.bits:
        fields += [constant("width", "values per sample and step"), constant("bit_words", "words of bits per sample and step")]
        fields.append(many("inout", "unsigned", "bits", "a bit for each value of all steps"))
    else:
        fields += _lists(stored, access, align=4)
    if stored.with_support and backward:
        fields.append(_ends("input"))
    if joins:
        fields += [constant("most_spikes", "maximum spikes stored per step"), constant("most", "maximum ids stored per step"), *_FOUND]
        fields += [_ends("inout")] if stored.with_support else []
        if stored.drops_support:
            fields.append(many("inout", "unsigned", "lost_near", "neurons in the surrogate's support that did not fit"))
    limited = joins and stored.limited
    if limited:
        fields.append(many("input", "float", "limit", "maximum spikes sent per step, and the key of the random choice"))
        fields.append(many("inout", "unsigned", "dropped", "number of dropped spikes"))
    for index, window in enumerate(windows):
        fields += _first_window(stored, index, window)
    cost = _with_request(costs["relay_windows"], windows)
    cost = replace(cost, search=SCORE) if limited else cost
    return VertexSpec("relay_windows", tuple(fields), cost, window_loops(cost, bits=stored.bits, joins=joins, limited=limited))


def relay_bits(costs: Mapping[str, CodeletCost], stored: StoredSpikes, window: ShownWindow, *, again: bool) -> VertexSpec:
    """Return the vertex that converts the bits of a step to ids in the first window of a bus, or in a further one."""
    bits = (
        constant("bit_words", "words of bits per sample and step"),
        many("input", "unsigned", "bits", "a bit for each value of all steps"),
    )
    shown = _next_window(stored, 0, window) if again else _first_window(stored, 0, window)
    cost = costs["relay_bits"] if again else _with_request(costs["relay_bits"], [window])
    return VertexSpec("relay_bits", (*_COMMON, *_offsets(1), *bits, *shown), cost, bit_loops(cost))


def next_window(costs: Mapping[str, CodeletCost], stored: StoredSpikes, windows: Sequence[ShownWindow]) -> VertexSpec:
    """Return the vertex that writes further windows of ids."""
    fields = [*_COMMON, *_offsets(len(windows)), *_lists(stored, "input")]
    fields += [_ends("input")] if any(window.with_support for window in windows) else []
    for index, window in enumerate(windows):
        fields += _next_window(stored, index, window)
    cost = costs["next_window"]
    return VertexSpec("next_window", tuple(fields), cost, next_window_loops(cost))


def relay_boundary(costs: Mapping[str, CodeletCost], stored: StoredSpikes | None) -> VertexSpec:
    """Return the vertex that copies steps that a relay has not sent yet to a boundary or back; `stored` is None for values."""
    if stored is None or stored.bits:
        rows = _with_saved("store", "float") if stored is None else _with_saved("bits", "unsigned")
        fields = [constant("width", "words per sample and step"), *rows]
        cost = costs["boundary"]
        return VertexSpec("boundary_rows", (*BOUNDARY, *_SHOWN, *fields), cost, boundary_loops(cost))
    fields = [constant("stored", "room for ids per step"), *_with_saved("ids", stored.ids, align=4), *_with_saved("numbers", "unsigned")]
    fields += _with_saved("ends", "unsigned") if stored.with_support else []
    cost = costs["boundary_events"]
    return VertexSpec("boundary_events", (*BOUNDARY, *_SHOWN, *fields), cost, boundary_event_loops(cost))


def _with_request(cost: CodeletCost, windows: Sequence[ShownWindow]) -> CodeletCost:
    return cost.with_request() if any(window.requesting_passes for window in windows) else cost


def _offsets(buses: int) -> Iterator[FieldSpec]:
    for i in range(buses):
        yield constant(f"offset{i}", "iteration whose window contains step 0", "int")
        yield constant(f"last{i}", "last step written to a window", "int")


def _lists(stored: StoredSpikes, access: FieldKind, align: int = 0) -> tuple[FieldSpec, ...]:
    return (
        constant("stored", "room for ids per step"),
        many(access, stored.ids, "ids", "ids of all steps", align),
        many(access, "unsigned", "numbers", "number of spikes of each step"),
    )


def _ends(access: FieldKind) -> FieldSpec:
    return many(access, "unsigned", "ends", "number of spikes of each step, plus neurons that only receive a gradient")


def _with_saved(part: str, element: Element, align: int = 0) -> tuple[FieldSpec, FieldSpec]:
    now = many("inout", element, part, "stored contents of the steps", align)
    return now, many("inout", element, f"kept_{part}", "contents saved at boundaries", align)


def _first_window(stored: StoredSpikes, i: int, window: ShownWindow) -> Iterator[FieldSpec]:
    yield from _support(stored, i) if window.with_support else _spikes(stored, i)
    if window.with_support:
        yield many("input", "unsigned", f"window_before{i}", "number of entries in the previous iteration's window")
    if window.may_continue:
        yield _position(i, "output")
    if window.requesting_passes:
        yield many("output", "unsigned", f"more{i}", "number of further windows needed")
    if window.requesting_passes > 1:
        yield constant(f"entries{i}", "capacity of a window of the backward pass")
    if window.lost:
        yield many("inout", "unsigned", f"lost{i}", "spikes beyond the capacity, or the further windows that they need")


def _next_window(stored: StoredSpikes, i: int, window: ShownWindow) -> Iterator[FieldSpec]:
    yield from _support(stored, i) if window.with_support else _spikes(stored, i)
    yield _position(i, "inout")


def _position(i: int, access: FieldKind) -> FieldSpec:
    return many(access, "unsigned", f"position{i}", "start of the next window")


def _spikes(stored: StoredSpikes, i: int) -> tuple[FieldSpec, ...]:
    return (
        constant(f"capacity{i}", "capacity of the window in ids"),
        constant(f"room{i}", "capacity rounded up to whole words"),
        many("output", stored.ids, f"window{i}", "ids of the window", 4),
        many("output", "unsigned", f"number{i}", "number of ids"),
    )


def _support(stored: StoredSpikes, i: int) -> tuple[FieldSpec, ...]:
    """Return the fields of a window that also contains neurons that receive a gradient without a spike."""
    return (
        constant(f"entries{i}", "capacity of the window in entries"),
        constant(f"support_room{i}", "capacity rounded up to whole words"),
        constant(f"kept{i}", "maximum spikes stored per step"),
        many("inout", stored.ids, f"support_ids{i}", "ids of the neurons that receive a gradient", 4),
        many("inout", "unsigned", f"support_number{i}", "number of spikes and of all entries"),
        many("output", stored.ids, f"back_ids{i}", "ids of the neurons whose gradients return", 4),
        many("output", "unsigned", f"back_number{i}", "number of spikes and of all entries that return"),
    )
