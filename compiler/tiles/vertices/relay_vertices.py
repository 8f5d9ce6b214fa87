"""Vertices of relays: what keeps the spikes and values of sources, and shows them to their targets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from snnc.compiler.tiles.vertices.boundary_vertices import BOUNDARY
from snnc.compiler.tiles.vertices.cost import CodeletCost
from snnc.compiler.tiles.vertices.vertex_spec import Element, FieldKind, FieldSpec, VertexSpec, constant, one, run

_COPY_MASK: Final = (
    run("input", "unsigned", "mask", "a bit for each neuron of a tile and sample", align=8),
    run("output", "unsigned", "copy", "the same for the next iteration", align=8),
    constant("count", "words"),
)
_COMPACT: Final = (
    one("input", "int", "k", "the iteration"),
    constant("interval", "iterations from one step to the next", "int"),
    constant("stage", "the iteration in which the source has step 0", "int"),
    constant("steps", "steps", "int"),
    constant("row", "units of masks of a sample"),
    constant("skip", "words of masks from one tile to the next, beside its own"),
    run("input", "unsigned", "mask", "masks of the source"),
    run("input", "unsigned", "first", "the first neuron of each unit"),
    run("input", "unsigned", "pieces", "what each worker looks through"),
    run("output", "unsigned", "found_ids", "ids that workers found"),
    run("output", "unsigned", "counts", "how many, by worker and sample"),
)
_COMMON: Final = (
    one("input", "int", "k", "the iteration"),
    constant("interval", "iterations from one step to the next", "int"),
    constant("samples", "samples of the relay"),
    constant("before", "1 where it keeps a value before step 0"),
)
_JOINED_STEP: Final = (
    constant("stage", "the iteration in which step 0 of the source joins the others", "int"),
    constant("steps", "steps", "int"),
)
_SHOWN: Final = (
    constant("lag", "iterations for which a step is shown", "int"),
    constant("before", "1 where it keeps a value before step 0"),
    constant("behind", "steps that it keeps at a boundary", "int"),
)
_FOUND: Final = (
    run("input", "unsigned", "pieces", "what each worker looked through"),
    run("input", "unsigned", "found_ids", "ids that workers found"),
    run("input", "unsigned", "counts", "how many, by worker and sample"),
)


def id_type(width: int) -> Element:
    """Return the type of ids of a source of `width` values: 16 bits as long as they suffice."""
    return "unsigned short" if width <= 1 << 16 else "unsigned"


@dataclass(frozen=True)
class Steps:
    """What relays keep of a source of spikes.

    `bits`: a bit for each value, not ids; `near`: also neurons that take gradient without a spike; `near_lost`: these may find no room.
    """

    ids: Element
    bits: bool = False
    near: bool = False
    near_lost: bool = False


@dataclass(frozen=True)
class Window:
    """What a vertex shows of a bus in one pass.

    `near`: the window of the backward pass, which holds neurons that take gradient too; `limited`: further windows follow it; `asked`: the
    passes whose further windows it counts; `lost`: spikes may find no room in it, and are counted.
    """

    near: bool
    limited: bool
    asked: int
    lost: bool


def copy_mask(costs: Mapping[str, CodeletCost]) -> VertexSpec:
    """Return what keeps the masks of a tile for relays that look through them in the next iteration."""
    return VertexSpec("copy_mask", _COPY_MASK, costs["copy_mask"])


def relay_compact(costs: Mapping[str, CodeletCost], *, tells: bool) -> VertexSpec:
    """Return what looks for spikes in masks; where it `tells`, what shows them next reads the iteration from it."""
    told = (one("output", "int", "iteration", "the iteration"),) if tells else ()
    return VertexSpec("relay_compact", (*_COMPACT, *told), costs["relay_compact"])


def relay_values(costs: Mapping[str, CodeletCost], buses: int, *, joins: bool) -> VertexSpec:
    """Return what shows values of a source to so many buses and, where it `joins`, keeps what the source just sent."""
    fields = [*_COMMON, *_offsets(buses), *(_JOINED_STEP if joins else ()), constant("width", "values of a sample and step")]
    fields.append(run("inout" if joins else "input", "float", "store", "values of all steps"))
    if joins:
        fields += [
            constant("tiles", "tiles of the source"),
            constant("row", "values that a tile sends of a sample, at most"),
            run("input", "unsigned", "first", "the first neuron of each tile"),
            run("input", "float", "now", "what the source sent"),
        ]
    fields += [run("output", "float", f"window{i}", "values of the step that the bus shows") for i in range(buses)]
    return VertexSpec("relay_values", tuple(fields), costs["relay_values"])


def relay_windows(costs: Mapping[str, CodeletCost], kept: Steps, windows: Sequence[Window], *, joins: bool, backward: bool) -> VertexSpec:
    """Return what shows first windows of lists of ids and, where it `joins`, keeps what workers just found."""
    way: FieldKind = "inout" if joins else "input"
    fields = [*_COMMON, *_offsets(len(windows)), *(_JOINED_STEP if joins else ())]
    if kept.bits:
        fields += [constant("width", "values of a sample and step"), constant("bit_words", "words of their bits")]
        fields.append(run("inout", "unsigned", "bits", "a bit for each value of all steps"))
    else:
        fields += _lists(kept, way, align=4)
    if kept.near and backward:
        fields.append(_ends("input"))
    if joins:
        fields += [constant("most_spikes", "spikes that are kept of a step"), constant("most", "ids that are kept of a step"), *_FOUND]
        fields += [_ends("inout")] if kept.near else []
        fields += [run("inout", "unsigned", "lost_near", "neurons near the threshold that found no room")] if kept.near_lost else []
    for index, window in enumerate(windows):
        fields += _first_window(kept, index, window)
    return VertexSpec("relay_windows", tuple(fields), _asking(costs["relay_windows"], windows))


def relay_bits(costs: Mapping[str, CodeletCost], kept: Steps, window: Window, *, again: bool) -> VertexSpec:
    """Return what lists the bits of a step in the first window of a bus, or in a further one."""
    bits = (constant("bit_words", "words of the bits of a step"), run("input", "unsigned", "bits", "a bit for each value of all steps"))
    shown = _next_window(kept, 0, window) if again else _first_window(kept, 0, window)
    cost = costs["relay_bits"] if again else _asking(costs["relay_bits"], [window])
    return VertexSpec("relay_bits", (*_COMMON, *_offsets(1), *bits, *shown), cost)


def next_window(costs: Mapping[str, CodeletCost], kept: Steps, windows: Sequence[Window]) -> VertexSpec:
    """Return what shows further windows of lists of ids."""
    fields = [*_COMMON, *_offsets(len(windows)), *_lists(kept, "input")]
    fields += [_ends("input")] if any(window.near for window in windows) else []
    for index, window in enumerate(windows):
        fields += _next_window(kept, index, window)
    return VertexSpec("next_window", tuple(fields), costs["next_window"])


def relay_boundary(costs: Mapping[str, CodeletCost], kept: Steps | None) -> VertexSpec:
    """Return what copies steps that are still shown to a boundary of segments, or back; `kept` is None for values."""
    if kept is None or kept.bits:
        both = _both("store", "float") if kept is None else _both("bits", "unsigned")
        fields = [constant("width", "words of a sample and step"), *both]
        return VertexSpec("boundary_rows", (*BOUNDARY, *_SHOWN, *fields), costs["boundary"])
    fields = [constant("stored", "ids that a step has room for"), *_both("ids", kept.ids, align=4), *_both("numbers", "unsigned")]
    fields += _both("ends", "unsigned") if kept.near else []
    return VertexSpec("boundary_events", (*BOUNDARY, *_SHOWN, *fields), costs["boundary_events"])


# ---- fields of several -------------------------------------------------------------------------------------------------------


def _asking(cost: CodeletCost, windows: Sequence[Window]) -> CodeletCost:
    return cost.asking() if any(window.asked for window in windows) else cost


def _offsets(buses: int) -> Iterator[FieldSpec]:
    for i in range(buses):
        yield constant(f"offset{i}", "the iteration in which the bus shows step 0", "int")
        yield constant(f"last{i}", "the last step that it shows", "int")


def _lists(kept: Steps, way: FieldKind, align: int = 0) -> tuple[FieldSpec, ...]:
    return (
        constant("stored", "ids that a step has room for"),
        run(way, kept.ids, "ids", "ids of all steps", align),
        run(way, "unsigned", "numbers", "spikes of each step"),
    )


def _ends(way: FieldKind) -> FieldSpec:
    return run(way, "unsigned", "ends", "spikes of each step, and neurons that only take gradient")


def _both(part: str, element: Element, align: int = 0) -> tuple[FieldSpec, FieldSpec]:
    now = run("inout", element, part, "what steps hold", align)
    return now, run("inout", element, f"kept_{part}", "the same at boundaries", align)


def _first_window(kept: Steps, i: int, window: Window) -> Iterator[FieldSpec]:
    yield from _near(kept, i) if window.near else _spikes(kept, i)
    if window.near:
        yield run("input", "unsigned", f"window_before{i}", "entries of the window of the iteration before")
    if window.limited:
        yield _position(i, "output")
    if window.asked:
        yield run("output", "unsigned", f"more{i}", "how many further windows follow")
    if window.asked > 1:
        yield constant(f"entries{i}", "entries that a window of the backward pass has room for")
    if window.lost:
        yield run("inout", "unsigned", f"lost{i}", "spikes that found no room, or further windows that they need")


def _next_window(kept: Steps, i: int, window: Window) -> Iterator[FieldSpec]:
    yield from _near(kept, i) if window.near else _spikes(kept, i)
    yield _position(i, "inout")


def _position(i: int, way: FieldKind) -> FieldSpec:
    return run(way, "unsigned", f"position{i}", "where the next window begins")


def _spikes(kept: Steps, i: int) -> tuple[FieldSpec, ...]:
    return (
        constant(f"capacity{i}", "ids that the window holds"),
        constant(f"room{i}", "ids that it has room for, in whole words"),
        run("output", kept.ids, f"window{i}", "its ids", 4),
        run("output", "unsigned", f"number{i}", "how many they are"),
    )


def _near(kept: Steps, i: int) -> tuple[FieldSpec, ...]:
    return (
        constant(f"entries{i}", "entries that the window holds"),
        constant(f"near_room{i}", "ids that it has room for, in whole words"),
        constant(f"kept{i}", "spikes that are kept of a step"),
        run("inout", kept.ids, f"near_ids{i}", "ids of what takes gradient", 4),
        run("inout", "unsigned", f"near_number{i}", "spikes and entries"),
        run("output", kept.ids, f"back_ids{i}", "the same ids, beside the gradients that come", 4),
        run("output", "unsigned", f"back_number{i}", "their spikes and entries"),
    )
