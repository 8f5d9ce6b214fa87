"""Load of the relays that run in a superstep, and their loops.

A relay is a tile that searches the masks of a population (one bit per neuron) for spikes, stores these, and sends them in windows to the
tiles that read them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from snnc.compiler.ir.plan import PhaseLoop, Relay
from snnc.compiler.tiles.cycles.load import Load, described_loops
from snnc.compiler.tiles.exchange.traffic import Layout
from snnc.compiler.tiles.mapped.network import BusSource
from snnc.compiler.tiles.problem import MappingProblem
from snnc.compiler.tiles.relays.relay_cycles import MaskRows, RelayWork, bits_work, compact_work, mask_rows, windows_work
from snnc.compiler.tiles.relays.relay_workers import bits_cycles, relay_cycles
from snnc.compiler.tiles.schedule.buses import Bus
from snnc.compiler.tiles.vertices.control_vertices import CLOCK_VERTEX


def clock_load(layout: Layout, iterations: int | None = None) -> Load:
    """Return the load of the clocks alone; `iterations` is passed to :class:`Load`."""
    load = Load(layout.problem, iterations)
    load.add_vertices(layout.clock_tiles, CLOCK_VERTEX, {})
    return load


def relay_load(layout: Layout, part: str, iterations: int | None = None) -> Load:
    """Return the load of relays and, except in part "windows", of the clocks; `iterations` is passed to :class:`Load`.

    In part "masks", which runs when spikes arrive, relays of spiking populations search masks, and all others write windows. In "windows",
    relays of spiking populations merge the results of the search and write windows. In "backward", all relays write windows again.
    """
    load = clock_load(layout, iterations) if part != "windows" else Load(layout.problem, iterations)
    add_relays(layout, load, part)
    return load


def add_relays(layout: Layout, load: Load, part: str) -> None:
    """Add relays to a superstep; `part` as in :func:`relay_load`.

    If relays search masks while neurons compute, part "shown" adds only the relays without masks, and part "masks" only those with masks.
    """
    problem, fused = layout.problem, layout.problem.schedule.latency > 1
    for source in problem.network.sources:
        rows = None if source.external else mask_rows(problem, source, layout.ranges[source.owner])
        searched = rows is not None and source.kind == "spikes"
        if (part == "windows" and not searched) or (part == "shown" and searched) or (fused and part == "masks" and not searched):
            continue
        relays, listed = layout.relays[source], _listed(problem, source, rows, part)
        tiles, kinds = np.array([relay.tile for relay in relays]), np.arange(len(relays))
        samples = tuple((relay.sample, relay.samples) for relay in relays)
        for bus in listed:
            forward = part != "backward"
            cycles = problem.memo.get((bus.id, "bits", samples, forward), partial(bits_cycles, problem, bus, samples, forward=forward))
            work = partial(bits_work, problem, (bus,))
            loops = partial(_relay_loops, f"relay bits of {_owner(problem, source)}", work, relays)
            load.add_kinds(tiles, kinds, load.in_chosen(cycles), shared=True, loops=loops)
        if source not in problem.bits or (rows and part != "backward"):
            make = partial(relay_cycles, problem, source, rows if part != "backward" else None, samples, part)
            cycles = problem.memo.get((source.buffer, rows, part, samples), make)
            name = "relay windows" if source.kind == "spikes" else "relay values"
            work = partial(windows_work, problem, source, rows, forward=part != "backward")
            if part == "masks" and searched and rows is not None:
                name, work = "relay compact", partial(compact_work, problem, source, rows)
            loops = partial(_relay_loops, f"{name} of {_owner(problem, source)}", work, relays)
            load.add_kinds(tiles, kinds, load.in_chosen(cycles), shared=True, loops=loops)


def _owner(problem: MappingProblem, source: BusSource) -> str:
    return problem.by_id[source.owner].label if source.owner in problem.by_id else source.owner


def _relay_loops(vertex: str, work: Callable[[int], RelayWork], relays: Sequence[Relay], kind: int) -> tuple[PhaseLoop, ...]:
    """Return the loops of the slowest worker of a relay, with expected spikes."""
    return tuple(loop for amounts, loops in work(relays[kind].samples).counted_loops for loop in described_loops(vertex, loops, amounts))


def _listed(problem: MappingProblem, source: BusSource, rows: MaskRows | None, part: str) -> tuple[Bus, ...]:
    """Return the buses whose windows are written from stored bits, and not (with a lag of 1) from ids that workers have just found."""
    if source not in problem.bits or part == "windows":
        return ()
    return tuple(bus for bus in problem.buses_of(source) if part == "backward" or rows is None or bus.lag != 1)
