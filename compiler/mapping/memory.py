"""Predicted bytes on every tile, by category, and the refusal of what does not fit."""

from __future__ import annotations

from typing import Final

import numpy as np

from snnc.compiler.mapping.block_memory import FLOAT, block_bytes
from snnc.compiler.mapping.gradient_traffic import reduced_bytes
from snnc.compiler.mapping.grouping import Ints
from snnc.compiler.mapping.predict import Step
from snnc.compiler.mapping.problem import Problem
from snnc.compiler.mapping.traffic import Layout
from snnc.compiler.mapping.vertex_memory import vertex_bytes

CATEGORIES: Final = ("weights", "tables", "optimiser", "gradients", "history", "relays", "records", "exchange", "vertices", "code")


def memory_by_tile(layout: Layout, steps: tuple[Step, ...]) -> dict[str, Ints]:
    """Return category -> bytes on each tile: exchange is what the largest superstep receives, code grows with all fragments."""
    problem = layout.problem
    found = {name: np.zeros(problem.target.tiles, dtype=np.int64) for name in CATEGORIES}
    used = np.zeros(problem.target.tiles, dtype=bool)
    for layer in problem.network.layers:
        where = layout.range_of(layer)
        used[where.tiles] = True
        held = layout.holdings(layer)
        cut, of_tile = layout.cut_of(layer), (where.tile_neurons, where.tile_samples)
        for name, size in block_bytes(problem, layer, cut, *of_tile, held, owned=not layout.exact).items():
            found[name][where.tiles] += size
    _add_owned(layout, found)
    for source, relays in layout.relays.items():
        for relay in relays:
            used[relay.tile] = True
            found["relays"][relay.tile] += relay.samples * problem.store_sizes[source]
    found["gradients"] += reduced_bytes(layout)
    for tile in layout.loss_tiles:
        used[tile] = True
        found["records"][tile] += _loss_bytes(problem)
    # What vertices read or write on other tiles waits in buffers; copies go straight to where it stays.
    buffers = [step.traffic.received + sum(traffic.sent for traffic in step.after) for step in steps if step.vertices]
    received = np.max(buffers, axis=0)
    fragments = np.sum([traffic.fragments for step in steps for traffic in (step.traffic, *step.after)], axis=0)
    fragments = fragments + sum(step.row.fragments for step in steps if step.row is not None)
    found["exchange"] += received.astype(np.int64)
    found["code"] += used * problem.target.fixed_tile_bytes + (fragments * problem.target.fragment_code_bytes).astype(np.int64)
    found["vertices"] += vertex_bytes(layout)
    return found


def _add_owned(layout: Layout, found: dict[str, Ints]) -> None:
    """Weights of indexed connections with the tiles that own them: what all their copies come from, the sum of gradients, moments."""
    for one in layout.copied if layout.exact else ():
        size = FLOAT * one.owners.count
        np.add.at(found["weights"], one.owners.tile, size)
        if one.link.weight_gradient:
            np.add.at(found["gradients"], one.owners.tile, size)
            np.add.at(found["optimiser"], one.owners.tile, layout.problem.network.moments * size)


def _loss_bytes(problem: Problem) -> int:
    """Where each class lies, its score (and when), the label and the loss of a sample; records and adjoints wait in buffers."""
    scores = 0 if problem.network.loss_of_steps else 2 if problem.network.loss == "ce_max_membrane" else 1
    return FLOAT * ((2 + scores) * problem.network.loss_width + 1 + problem.loss_parts)


def bytes_before_pricing(layout: Layout) -> int:
    """Bytes of the fullest tile that are known before supersteps are: what it holds, and code for the test for further windows.

    Every relay of a limited bus sends a flag to one tile, whose code alone may pass a tile's memory when layers are many.
    """
    problem = layout.problem
    held = np.zeros(problem.target.tiles, dtype=np.int64)
    for layer in problem.network.layers:
        where = layout.range_of(layer)
        held[where.tiles] += sum(block_bytes(problem, layer, layout.cut_of(layer), where.tile_neurons, where.tile_samples).values())
    for source, relays in layout.relays.items():
        np.add.at(held, [r.tile for r in relays], [r.samples * problem.store_sizes[source] for r in relays])
    tests = [problem.limited(backward=backward) for backward in ((False, True) if problem.training else (False,))]
    flags = sum(len(layout.relays[bus.source]) for limited in tests for bus in limited)
    held[0] += flags * problem.target.fragment_code_bytes
    return int(held.max())


def largest_category(memory: dict[str, Ints], tile: int) -> tuple[str, int]:
    """Name and bytes of what takes most of `tile`."""
    name = max(CATEGORIES, key=lambda category: int(memory[category][tile]))
    return name, int(memory[name][tile])
