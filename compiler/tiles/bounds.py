"""Two lower bounds on the cycles of a training step, to compare predictions with.

*Balance bound*: the codelets and supersteps of the plan, distributed perfectly over ``A`` tiles (all tiles of the chips that the plan may
use). Let ``w_v`` be the worker cycles of vertex v, ``r_i`` the bytes that tile i receives (a multicast counts at each of its receivers),
and ``e`` the bytes that a tile receives in a cycle. Superstep s runs ``runs_s`` times, its barrier costs ``sync_s`` cycles, and no tile
spends more than ``c_s`` cycles on copies inside its memory. The superstep costs::

    bound_s = (sum_v w_v + c_s) / A  +  sum_i r_i / (A e)  +  sync_s          bound_cycles = sum_s runs_s bound_s

A tile issues one worker instruction a cycle, so a worker cycle is a tile cycle when all workers are busy. Predictions take the slowest
tile of each superstep where this bound takes the mean, so the bound never exceeds the prediction.

*Ideal bound*: the minimum work that any code must do. An event costs one instruction issue per vector of columns (as wide as the target's
fp32 vector instructions) for the currents, and one for the weight gradients. An input that receives a gradient costs one issue per vector
for this gradient. Every id crosses the exchange once, to one receiver. Each time step has one barrier per direction. Neurons, optimiser,
loss, addresses and fragments are free::

    ideal_cycles = T (issues / A + id bytes / (A e) + barriers)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from snnc.compiler.ir.plan import Phase
from snnc.compiler.tiles.blocks.grouping import ceil_div
from snnc.compiler.tiles.mapped.network import Link
from snnc.compiler.tiles.problem import MappingProblem
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
        entries = problem.support_events(problem.bus_into(link)) if problem.returns(link) else link.inputs
        back = row if link.indexed is not None else ceil_div(link.outputs, width) if link.dense else 1.0 / width
        issues += float(entries * back)
    return problem.batch * issues


def _moved_bytes(problem: MappingProblem, bus_id: str) -> float:
    """Return the bytes of the ids or values that one bus must move in a time step of the whole batch."""
    bus = problem.bus[bus_id]
    if not bus.events:
        return float(problem.batch * bus.window_bytes)
    return problem.batch * min(problem.events(bus.source), bus.capacity) * bus.id_bytes
