"""Check that a plan was made for a step program."""

from __future__ import annotations

import math
from collections.abc import Mapping

from snnc.backends.poplar.errors import PlanMismatchError
from snnc.compiler.ir.plan import Block, Plan, PopulationPlan
from snnc.compiler.ir.step_program import StepProgram


def check_plan(program: StepProgram, plan: Plan) -> None:
    """Raise a PlanMismatchError if `plan` does not belong to `program`.

    Populations and their numbers of neurons, connections (source buffer, target, delay) and the widths of buses must agree, a plan of
    training needs a program with a backward pass, and blocks must cover all neurons and samples once, in order.
    """
    _compare("populations", {p.id: math.prod(p.shape) for p in program.populations}, {p.id: p.neurons for p in plan.populations})
    buses = {bus.id: bus for bus in plan.buses}
    if missing := sorted({c.bus for c in plan.connections} - buses.keys()):
        raise PlanMismatchError(f"the plan lacks the buses {', '.join(missing)}, which its connections read; map the program again.")
    _compare(
        "connections",
        {c.id: (c.source_buffer, c.target, c.delay) for c in program.connections},
        {c.id: (buses[c.bus].buffer, c.target, c.delay) for c in plan.connections},
    )
    widths = {b.buffer: b.width for b in plan.buses}
    _compare("sources", {name: math.prod(program.buffers[name].shape) for name in widths if name in program.buffers}, widths)
    if plan.training and not program.backward:
        raise PlanMismatchError("the plan is for training, but the program has no backward pass; map the program again.")
    for placed in plan.populations:
        _check_blocks(placed, plan.batch)


def _compare(what: str, of_program: Mapping[str, object], of_plan: Mapping[str, object]) -> None:
    if of_program != of_plan:
        names = sorted({name for name, _ in of_program.items() ^ of_plan.items()})
        raise PlanMismatchError(f"the plan and the program have different {what} ({', '.join(names)}); map the program again.")


def _check_blocks(placed: PopulationPlan, batch: int) -> None:
    """Check that replicas cover the batch, column groups the neurons of each replica, and blocks the samples of each group, in order."""
    # The next neuron of the replica, the replica's samples (from `begin` to `end`), and the next sample of the group.
    neuron, begin, end, reached = 0, 0, 0, batch
    group: Block | None = None
    for block in placed.blocks:
        if group is not None and (block.tile, block.first, block.count) == (group.tile, group.first, group.count):
            if block.sample != reached:
                break
        else:
            if neuron == placed.neurons:
                neuron, begin = 0, end
            if block.first != neuron or block.sample != begin or (neuron and reached != end):
                break
            group, neuron = block, neuron + block.count
        reached = block.sample + block.samples
        end = reached if block.first == 0 else end
    else:
        if neuron == placed.neurons and reached == end == batch:
            return
    raise PlanMismatchError(f"the blocks of {placed.id} do not cover {placed.neurons} neurons and {batch} samples once, in order.")
