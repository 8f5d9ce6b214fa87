"""Errors for networks that do not fit their machine: needed and available bytes, and remedies."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from snnc.compiler.tiles.codelets.block_codelets import layer_code_bytes
from snnc.compiler.tiles.errors import BaselineTooBigError, Remedy, TooBigError
from snnc.compiler.tiles.exchange.traffic import Layout
from snnc.compiler.tiles.mapped.network import BusSource, Layer
from snnc.compiler.tiles.memory.block_memory import block_bytes, code_bytes_estimate, most_received
from snnc.compiler.tiles.memory.lifetimes import fullest, stages_of
from snnc.compiler.tiles.placement.choices import all_within, check_pairs, choices
from snnc.compiler.tiles.placement.placement import Placement, each_once, placements
from snnc.compiler.tiles.prediction.codelet_bytes import codelet_bytes
from snnc.compiler.tiles.prediction.memory import MemoryUse, largest_category
from snnc.compiler.tiles.problem import MappingProblem
from snnc.compiler.tiles.remedies import Attempt, find_remedies
from snnc.compiler.tiles.request import MappingRequest

GROWTH: Final = 50
"""Each trial of :func:`_closest` increases the memory of a tile by 1 / GROWTH of it."""
_CATEGORY_TEXTS: Final = {
    "weights": "weights",
    "tables": "tables of connections that are not dense",
    "optimiser": "optimiser state",
    "gradients": "gradients",
    "history": "history of the states",
    "relays": "spikes of all steps",
    "records": "outputs of all steps",
    "exchange": "received data",
}
"""Names of the categories of data in messages."""


def misfit_error(
    problem: MappingProblem, misfit: tuple[int, Layout, MemoryUse] | None, retry: tuple[MappingRequest, Attempt] | None = None
) -> TooBigError:
    """Return an error with the needed and available bytes, the fullest tile and its largest category.

    `misfit` is the smallest layout that does not fit, with the bytes of its fullest tile and its memory use; None if there is not even a
    placement. With `retry` (the request, and a function that plans changed requests), the error also lists remedies.
    """
    available = problem.target.tile_bytes
    tile: int | None = None
    if misfit is not None:
        _, layout, memory = misfit
        tile, needed = memory.tile, memory.largest
        phase = memory.phase_of(tile)
        category, size = largest_category(memory.at_peak, tile)
        owners = [layer for layer in problem.network.layers if tile in layout.ranges[layer.id].tiles]
        label = owners[0].label if owners else ""
        who = f"tile {tile}" + (f" (layer {label!r})" if owners else _relayed(layout, tile))
        what = _category_text(layout, tile, category, size)
    else:
        layer, neurons, phase, held = _closest(problem)
        label, needed = layer.label, sum(held.values())
        category, size = max(held.items(), key=lambda item: item[1])
        who = f"each tile of layer {label!r} ({neurons} of {layer.neurons} neurons on a tile)"
        codelets = layer_code_bytes(problem, layer) + problem.target.fixed_tile_bytes
        what = _code(size - codelets) if category == "code" else _CATEGORY_TEXTS[category]
    knobs = find_remedies(retry[0], needed, retry[1]) if retry is not None else ()
    return TooBigError(
        f"the network does not fit on {problem.target.name}: {who} needs {needed:,} bytes and has {available:,} (in {phase!r}). "
        f"Most of it, {size:,} bytes, is {what}.{_advice(problem, knobs) if retry is not None else ''}",
        needed=needed,
        available=available,
        tile=tile,
        phase=phase,
        layer=label,
        category=category,
        category_bytes=size,
        knobs=knobs,
    )


def bytes_at_least(problem: MappingProblem) -> int:
    """Return the bytes that tiles would need so that a placement exists; call it only for problems without a placement."""
    return sum(_closest(problem)[3].values())


def _advice(problem: MappingProblem, knobs: tuple[Remedy, ...]) -> str:
    if not knobs:
        return " No option helps; use a network with fewer neurons."
    effects = []
    for knob in knobs:
        many = f"{knob.chips} processors, " if knob.chips > problem.target.chips else ""
        about, verdict = "" if knob.exact else "about ", "fits" if knob.fits else "still too many"
        effects.append(f"{knob.text} ({many}{about}{knob.bytes:,} bytes: {verdict})")
    start = "What helps" if any(knob.fits for knob in knobs) else "No option is enough; what helps most"
    return f" {start}: {'; '.join(effects)}."


def _category_text(layout: Layout, tile: int, category: str, size: int) -> str:
    if category == "code":
        return _code(size - int(codelet_bytes(layout)[0][tile]) - layout.problem.target.fixed_tile_bytes)
    source = _most_relayed(layout, tile) if category == "relays" else None
    return _CATEGORY_TEXTS[category] if source is None or source.kind == "spikes" else "values of all steps"


def _code(exchange: int) -> str:
    return f"code ({exchange:,} of them exchange code, for fragments received from other tiles)"


def _most_relayed(layout: Layout, tile: int) -> BusSource | None:
    sizes = layout.problem.store_sizes
    held = {source: sizes[source] * r.samples for source, relays in layout.relays.items() for r in relays if r.tile == tile}
    return max(held, key=lambda s: held[s], default=None)


def _relayed(layout: Layout, tile: int) -> str:
    """Say what a tile without blocks stores: the source whose samples take most of its memory, or losses."""
    source = _most_relayed(layout, tile)
    if source is None:
        return " (losses of samples)" if tile in layout.loss_tiles else ""
    layer = layout.problem.by_id.get(source.owner)
    return f" (relays of {'input ' + source.owner if layer is None else f'layer {layer.label!r}'})"


def _closest(problem: MappingProblem) -> tuple[Layer, int, str, dict[str, int]]:
    """Return the layer that needs the most bytes, its neurons on a tile, the stage of its peak, and its bytes by category in this stage.

    They are those of the first placement found if the memory of tiles is increased step by step. Stages are those of :func:`stages_of`.
    """
    check_pairs(problem.network, problem.batch)
    options, room = choices(problem), problem.target.tile_bytes
    placement: Placement | None = None
    while placement is None:
        room += room // GROWTH
        tight = each_once(options, partial(all_within, room))
        placement = next(placements(problem, tight, problem.target.chips), None)
    needs = []
    for layer, where in zip(problem.network.layers, placement.ranges, strict=True):
        cut, neurons = where.cut, int(where.neurons.max())
        held: dict[tuple[str, str], Any] = dict(block_bytes(problem, layer, cut, neurons, cut.samples(problem.batch)))
        held["code", "always"] = int(code_bytes_estimate(problem, layer, cut, neurons))
        stages = stages_of(training=problem.training, segment=problem.segment)
        needs.append((layer, neurons, *fullest(held, stages, most_received(problem, layer, cut, neurons))))
    return max(needs, key=lambda item: sum(item[3].values()))


def baseline_misfit_error(problem: MappingProblem, strategy: str, misfit: tuple[int, Layout, MemoryUse] | None) -> BaselineTooBigError:
    """Return an error about the layout of a baseline (:mod:`snnc.compiler.tiles.baselines`) that comes closest to fitting."""
    assert misfit is not None, "a baseline has at least one form, and none fits"
    needed, layout, memory = misfit
    tile = memory.tile
    name, size = largest_category(memory.at_peak, tile)
    what = _category_text(layout, tile, name, size)
    return BaselineTooBigError(
        f"the network does not fit on {problem.target.name} with the strategy {strategy!r}: tile {tile} needs {needed:,} bytes and has "
        f"{problem.target.tile_bytes:,} (in {memory.phase_of(tile)!r}). Most of it, {size:,} bytes, is {what}. "
        "Try the strategy 'snnc'.",
        needed=needed,
    )
