"""Search for the fastest plan of a network on a machine: in its original form, cut into parts, or with reordered neurons."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

from snnc.compiler.ir.graph import Graph, Sparse
from snnc.compiler.ir.plan import Plan
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.lowering.capacities import Capacities, source_labels
from snnc.compiler.machines.target import Target
from snnc.compiler.tiles import make_plan
from snnc.compiler.tiles.activity import Activity, capacities
from snnc.compiler.tiles.errors import TooBigError
from snnc.compiler.tiles.mapped.network import describe
from snnc.compiler.tiles.partition import prepare
from snnc.compiler.tiles.planning.options import DEFAULT_BATCH, PlanOptions
from snnc.compiler.tiles.planning.ordering import Common, map_orders
from snnc.compiler.tiles.planning.parting import Mapped, NetworkPartitioner, map_parts
from snnc.compiler.tiles.search.quick_estimates import QuickEstimates

IN_REACH: Final = 2.0
"""A plan on one chip is searched if its quick estimate takes at most this many times the cycles of the plan on all chips."""


def parter_of(graph: Graph, program: StepProgram, chosen: PlanOptions, activity: Activity | None = None) -> NetworkPartitioner:
    """Return the :class:`NetworkPartitioner` of `graph`, which was lowered to `program`."""
    return NetworkPartitioner(prepare(graph, chosen.loss, chosen.loss_output), program, chosen.lowering, activity, chosen.seed)


def map_graph(
    graph: Graph,
    program: StepProgram,
    chosen: PlanOptions,
    activity: Activity | None = None,
    *,
    machine: Target,
    strategy: str = "snnc",
    chips: int | None = None,
    common: Common | None = None,
) -> Mapped:
    """Map a lowered graph onto a machine as :func:`map_program` does, with the fastest number of parts and the fastest order of neurons.

    Callers that map one program repeatedly pass the same `common`, which stores results for reuse. On a machine of several chips, a
    plan on one chip is also tried: quick estimates for the whole machine, which choose parts and orders, may miss the best for one chip.
    """
    mapped = partial(_map_graph, graph, program, chosen, activity, machine=machine, strategy=strategy, common=common or Common())
    fastest = mapped(chips=chips)
    if chips is not None or machine.chips == 1 or strategy != "snnc" or chosen.embedded:
        return fastest
    with suppress(TooBigError):
        estimate = map_program(program, chosen, activity, machine=machine, chips=1, quick=True)
        if estimate.cycles <= IN_REACH * fastest.plan.cycles:
            return min(fastest, mapped(chips=1), key=lambda candidate: candidate.plan.cycles)
    return fastest


def _map_graph(
    graph: Graph,
    program: StepProgram,
    chosen: PlanOptions,
    activity: Activity | None,
    *,
    machine: Target,
    strategy: str,
    chips: int | None,
    common: Common,
) -> Mapped:
    """Map a program in its original form, in another order of channels, or cut into parts, whichever is fastest.

    Only the original form is mapped in mode "drop", for a baseline strategy, and for an embedded program (called by PyTorch or PopTorch).
    """
    estimates = QuickEstimates(common.clocks)
    map_variant = partial(map_program, chosen=chosen, machine=machine, strategy=strategy, chips=chips, estimates=estimates)
    # An embedded program keeps the author's order of neurons. In mode "drop", order and parts determine which spikes are dropped.
    if strategy != "snnc" or chosen.embedded or chosen.mode == "drop":
        return Mapped(map_variant(program, activity=activity))

    def mapper(variant: StepProgram, activity: Activity | None, quick: bool = False) -> Plan:
        return map_variant(variant, activity=activity, quick=quick)

    if (chosen.parts or 1) == 1 and not any(graph.of_type(Sparse)):
        return map_orders(program, mapper, activity, common)
    return map_parts(parter_of(graph, program, chosen, activity), mapper, chips or machine.chips, chosen.parts)


def map_program(
    program: StepProgram,
    chosen: PlanOptions,
    activity: Activity | None = None,
    *,
    machine: Target,
    strategy: str = "snnc",
    chips: int | None = None,
    quick: bool = False,
    estimates: QuickEstimates | None = None,
) -> Plan:
    """Map a lowered program; with measured spikes, choose the faster of full windows and windows for the measured numbers of spikes.

    In mode "drop", windows of the backward pass are always full. `strategy`, `chips`, `quick` and `estimates` are those of
    :func:`~snnc.compiler.tiles.make_plan`.
    """
    steps = program.steps
    assert steps is not None, "callers check the number of steps"
    # By default, an embedded program stores all its data on its tiles.
    streaming = "off" if chosen.embedded and chosen.streaming == "auto" else chosen.streaming
    make = partial(
        make_plan,
        program,
        machine,
        steps=steps,
        batch=chosen.batch or DEFAULT_BATCH,
        mode=chosen.mode,
        recompute=chosen.recompute,
        streaming=streaming,
        chips=chips,
        strategy=strategy,
        quick=quick,
        estimates=estimates,
        operation=chosen.operation,
    )
    drops = chosen.mode == "drop"
    if drops and describe(program).windowed:
        # The gradient of dropped spikes must not depend on which form of gradients is faster.
        make = partial(make, gradients="windowed")
    requested = _requested_capacity(program, chosen)
    if activity is None:
        return make(capacity=requested)
    widths = {name: math.prod(program.buffers[name].shape) for name in activity.mean}
    if not activity.peak:
        make = partial(make, gradient_capacity=widths) if drops else make
        return make(activity=activity.mean, activity_source=activity.source, support=activity.support, capacity=requested)
    forward: list[int | Mapping[str, int]] = [widths, capacities(program, activity.peak)] if requested is None else [requested]
    if isinstance(requested, Mapping):
        forward = [{**widths, **requested}] if drops else [{**widths, **requested}, {**capacities(program, activity.peak), **requested}]
    backward: list[Mapping[str, int]] = [widths, capacities(program, activity.support_peak)] if activity.support else [{}]
    backward = backward[:1] if drops else backward
    candidates = [
        # Dense gradients are not sent in windows, so they are tried with only one of the gradient capacities.
        {
            "capacity": capacity,
            "gradient_capacity": {name: entries[name] for name in activity.support},
            "gradients": "windowed" if activity.support and entries is widths else "auto",
        }
        for capacity, entries in itertools.product(forward, backward)
    ]
    make = partial(make, activity=activity.mean, activity_source=activity.source, **activity.measured)
    return make(**_fastest_capacities(make, candidates))


def _requested_capacity(program: StepProgram, chosen: PlanOptions) -> int | Mapping[str, int] | None:
    """Return the requested capacity, by buffer if sources differ; in mode "drop", sources without a capacity send all spikes."""
    if not isinstance(chosen.capacity, Capacities):
        return chosen.capacity
    labels, capacities = source_labels(program), dict[str, int]()
    for source in describe(program).sources:
        if source.kind == "spikes":
            capacity = chosen.capacity.of(labels[source.buffer], source.width)
            if capacity is not None or chosen.mode == "drop":
                capacities[source.buffer] = source.width if capacity is None else capacity
    return capacities


def _fastest_capacities(make: Callable[..., Plan], candidates: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the candidate with the fastest plan before local search; the last one if none fits."""
    plans: list[tuple[float, int]] = []
    for index, candidate in enumerate(candidates) if len(candidates) > 1 else ():
        with suppress(TooBigError):
            plans.append((make(**{**candidate, "effort": 0}).cycles, index))
    return candidates[min(plans, default=(0.0, -1))[1]]
