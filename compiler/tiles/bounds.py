"""Two lower bounds on the cycles of a training step, to compare predictions with (docs/explanation/bounds.md).

The *balance bound* is the time of the plan if its work and bytes were spread evenly over all tiles. The *ideal bound* is the minimum work
that any code must do: one instruction per event and vector of weights, each id moved once, and one barrier per time step and direction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from snnc.compiler.ir.plan import Phase
from snnc.compiler.tiles.blocks.grouping import ceil_div
from snnc.compiler.tiles.mapped.network import Link
from snnc.compiler.tiles.problem import MappingProblem
from snnc.compiler.tiles.schedule.buses import id_bytes
from snnc.compiler.tiles.supersteps.superstep import SuperstepDraft

VECTOR: Final = 2
"""Single-precision columns per issue if the target does not define them: the vector width of the emitted codelets."""


def balance_bound(problem: MappingProblem, steps: Sequence[SuperstepDraft], phases: Sequence[Phase], tiles: int) -> float:
    """Return the cycles of a training step if the work and the bytes of every superstep were spread evenly over `tiles` tiles."""
    rate = tiles * problem.target.exchange_bytes_per_cycle
    cycles = 0.0
    for step, phase in zip(steps, phases, strict=True):
        moved = sum(float(traffic.received.sum()) for traffic in (step.traffic, *step.after))
        cycles += step.runs * ((float(step.load.total.sum()) + step.local) / tiles + moved / rate + phase.sync)
    return cycles


def ideal_bound(problem: MappingProblem, tiles: int) -> float:
    """Return the cycles of a training step with ideal event loops, ids that move once and one barrier per step and direction."""
    issues = sum(_issues(problem, link) for link in problem.network.links)
    moved = sum(_moved_bytes(problem, bus_id) for bus_id in problem.bus) if tiles > 1 else 0.0
    directions = 2 if problem.training else 1
    barriers = directions * problem.target.sync_cycles
    return problem.steps * (issues / tiles + moved / (tiles * problem.target.exchange_bytes_per_cycle) + barriers)


def _issues(problem: MappingProblem, link: Link) -> float:
    """Return the instruction issues of one connection in a time step of the whole batch, in both directions."""
    rows = problem.window_events(link) if link.events else link.inputs
    width = problem.target.compute.fp32_width or VECTOR
    row = ceil_div(link.outputs, width) if link.dense else 1.0 / (1 if link.events else width)
    if link.indexed is not None:
        row = link.indexed.values / link.inputs / width
    issues = float(rows * row)
    if problem.training and link.weight_gradient:
        issues += float(rows * row)
    if problem.training and link.input_gradient:
        entries = problem.support_events[problem.bus_of[link.id]] if problem.returns(link) else link.inputs
        back = row if link.indexed is not None else ceil_div(link.outputs, width) if link.dense else 1.0 / width
        issues += float(entries * back)
    return problem.batch * issues


def _moved_bytes(problem: MappingProblem, bus_id: str) -> float:
    """Return the bytes of the ids or values that one bus must move in a time step of the whole batch, with at most a window of ids."""
    bus = problem.bus[bus_id]
    if not bus.events:
        return float(problem.batch * bus.window_bytes)
    return problem.batch * min(problem.events(bus.source), bus.capacity) * id_bytes(bus.source)
