"""Conversion of the layout that a search has chosen to a :class:`~snnc.compiler.ir.plan.Plan`, with all predictions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from snnc.compiler.ir.arrays.sizes import FLOAT, LABEL_BYTES
from snnc.compiler.ir.plan import Block, BusPlan, ConnectionPlan, Plan, PopulationPlan
from snnc.compiler.tiles.blocks.grouping import column_groups, split, split_samples
from snnc.compiler.tiles.blocks.tile_range import TileRange
from snnc.compiler.tiles.bounds import balance_bound, ideal_bound
from snnc.compiler.tiles.exchange.layer_traffic import traffic_of
from snnc.compiler.tiles.exchange.traffic import Layout
from snnc.compiler.tiles.gradients.packing import packing_of
from snnc.compiler.tiles.mapped.network import Layer, Link
from snnc.compiler.tiles.prediction.passes import runs_of_parts
from snnc.compiler.tiles.prediction.training_step import cycles_by_tile, phase, supersteps
from snnc.compiler.tiles.problem import MappingProblem
from snnc.compiler.tiles.schedule.buses import Bus
from snnc.compiler.tiles.search.search import Priced
from snnc.compiler.tiles.supersteps.streaming import streaming_bytes


def write_plan(name: str, best: Priced, usable: int, strategy: str) -> Plan:
    """Return a layout as a plan; `usable` is the number of chips that it was allowed to use."""
    layout, problem = best.layout, best.layout.problem
    steps, tiles = supersteps(layout), usable * problem.target.tiles_per_chip
    phases = tuple(phase(layout, step) for step in steps)
    plan = replace(
        write_estimate(name, best),
        populations=tuple(_population(problem, layer, layout.ranges[layer.id]) for layer in problem.network.layers),
        buses=tuple(_bus(layout, bus) for bus in problem.buses),
        connections=tuple(_connection(layout, link) for link in problem.network.links),
        memory={category: tuple(tiles.tolist()) for category, tiles in best.memory.at_peak.items()},
        memory_over_time=tuple(best.memory.phases()),
        unshared_bytes=int(best.memory.unshared[best.memory.tile]),
        phases=phases,
        loss_tiles=layout.loss_tiles,
        tile_cycles=cycles_by_tile(layout, steps),
        bound_cycles=balance_bound(problem, steps, phases, tiles),
        ideal_cycles=ideal_bound(problem, tiles),
        strategy=strategy,
        host_bytes=host_bytes(problem),
        streaming_bytes=streaming_bytes(layout),
        latency=1 if problem.fused is None else problem.fused.latency,
    )
    return replace(plan, traffic=traffic_of(plan, problem.network))


def write_estimate(name: str, best: Priced) -> Plan:
    """Return the short plan of a quick estimate: only the cycles of the supersteps."""
    problem = best.layout.problem
    return Plan(
        name=name,
        target=problem.target,
        steps=problem.steps,
        batch=problem.batch,
        training=problem.training,
        interval=problem.schedule.interval,
        iterations=problem.schedule.iterations(problem.steps),
        populations=(),
        buses=(),
        connections=(),
        activity=dict(problem.activity.mean),
        activity_source=problem.activity.source,
        memory={},
        phases=best.phases,
        segment=problem.segment,
        streamed=problem.streamed,
    )


def host_bytes(problem: MappingProblem) -> int:
    """Return the bytes that the host sends: inputs of all steps (some repeatedly with segments) and, in training, all targets.

    If a caller computes the loss (``external``), the host sends the adjoint of the output instead of targets.
    """
    network, times = problem.network, runs_of_parts(problem)
    size = LABEL_BYTES * problem.training
    if network.external:
        size = FLOAT * problem.steps * network.loss.width
    elif problem.training and (targets := network.loss.targets(problem.steps)):
        size = FLOAT * targets
    size *= times["loss"]
    for source in problem.network.inputs:
        turns = 1 if source.static else problem.segments.input_transfers
        # If another framework calls the passes (``operation``), inputs stay on the device until the backward pass has ended.
        size += (1 if network.operation else times["forward"]) * turns * problem.sequence_bytes(source, problem.steps_stored(source))
    return problem.batch * size


def _bus(layout: Layout, bus: Bus) -> BusPlan:
    return BusPlan(
        id=bus.id,
        source=bus.source.owner,
        buffer=bus.source.buffer,
        width=bus.source.width,
        kind="events" if bus.events else "values",
        lag=bus.lag,
        capacity=bus.capacity,
        mode=layout.problem.mode,
        relays=layout.relays[bus.source],
        gradient=layout.reductions[bus.id].to_plan() if bus.id in layout.reductions else None,
        form="bits" if bus.source in layout.problem.bits else "ids",
    )


def _connection(layout: Layout, link: Link) -> ConnectionPlan:
    packing = packing_of(layout, link)
    bundles = 0 if packing is None else packing.bundles
    problem = layout.problem
    return ConnectionPlan(link.id, problem.bus_of[link.id], link.delay, link.target, bundles, problem.training and problem.returns(link))


def _population(problem: MappingProblem, layer: Layer, where: TileRange) -> PopulationPlan:
    return PopulationPlan(
        layer.id, layer.label, layer.neurons, problem.schedule.stages[layer.id], where.starts, where.width, tuple(_blocks(problem, where))
    )


def _blocks(problem: MappingProblem, where: TileRange) -> Iterator[Block]:
    groups = column_groups(where.neurons, where.columns).tolist()
    for replica, (sample, samples) in enumerate(where.samples):
        tiles = where.of(replica).tolist()
        shares = problem.sample_groups(where.neurons, where.columns, samples).tolist()
        first = 0
        for index, neurons in enumerate(where.neurons.tolist()):
            parts = list(split_samples(samples, shares[index], paired=where.paired))
            for offset, count in split(neurons, groups[index]):
                yield from (Block(tiles[index], first + offset, count, sample + begin, number) for begin, number in parts)
            first += neurons
