"""Predict the cost of a network on a machine: its plan, and lower bounds of its time, without emitting anything."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Unpack

from snnc.compiler.ir.graph import Graph, Kind
from snnc.compiler.ir.plan import Plan
from snnc.data.whole_files import write_bytes
from snnc.driver.activity import assumed_activity
from snnc.driver.loading import Model, as_graph
from snnc.driver.lowering import lower_graph
from snnc.driver.measuring import Data, activity_on_data
from snnc.driver.stages import plan_program
from snnc.errors import EstimateError, OptionConflictError
from snnc.options.compile_options import CompileOptions, options
from snnc.options.keywords import EstimateKeywords, check_keywords, with_keywords
from snnc.project.compiled import Compiled


@dataclass(frozen=True, eq=False)
class Estimate:
    """A plan, and the time the planning took.

    Attributes
    ----------
    plan
        The placement, and its predicted cost.
    compile_s
        Seconds from the model to the plan.
    """

    plan: Plan
    compile_s: float
    compiled: Compiled | None = field(default=None, repr=False)
    """The planned network; None if only the plan is stored."""

    def report(self, path: str | Path, format: str | None = None) -> Path:
        """Write the report of the plan to a file, and return its path; for `format` see :meth:`snnc.Session.report`."""
        from snnc.report import Subject, format_of, subject_of, write

        file = Path(path)
        subject = Subject(self.plan, {}) if self.compiled is None else subject_of(self.compiled)
        write_bytes(file, write(subject, format or format_of(file)))
        return file

    def to_data(self) -> dict[str, Any]:
        """Return the results as JSON types; cycles and times are predictions for a training step, or a forward pass without a loss."""
        plan, memory = self.plan, self.plan.tile_memory
        return {
            "name": plan.name,
            "target": plan.target.name,
            "strategy": plan.strategy,
            "parts": {name: len(ids) for name, ids in plan.parts.items()},
            "ipus": plan.chips_used,
            "tiles_used": sum(size > 0 for size in memory),
            "tiles": plan.target.tiles,
            **{name: getattr(plan, name) for name in ("batch", "steps", "training")},
            "activity": plan.activity_source,
            "step_cycles": plan.cycles,
            "bound_cycles": plan.bound_cycles,
            "ideal_cycles": plan.ideal_cycles,
            "balance": plan.bound_cycles / plan.cycles,
            "clock_ghz": plan.target.clock_hz / 1e9,
            "step_ms": 1e3 * plan.seconds,
            "samples_per_s": plan.batch / plan.seconds,
            "host_ms": None if plan.host_seconds is None else 1e3 * plan.host_seconds,
            "step_with_host_ms": 1e3 * plan.seconds_with_host,
            "peak_tile_bytes": max(memory),
            "tile_bytes": plan.target.tile_bytes,
            "segment": plan.segment,
            "streamed": plan.streamed,
            "streaming_bytes": sum(plan.streaming_bytes),
            "compile_s": self.compile_s,
        }


@with_keywords(EstimateKeywords, CompileOptions)
def estimate(
    model: Model,
    target: str = "gc200",
    *,
    activity: float | None = None,
    strategy: str = "snnc",
    dt: float | None = None,
    input_kind: Kind | None = None,
    **keywords: Unpack[EstimateKeywords],
) -> Estimate:
    """Predict the cost of a network on a machine, without emitting, building or running anything.

    Parameters
    ----------
    model, target, steps, batch, loss, loss_output, optimizer, surrogate, gradient_window, capacity, mode, calibrate, dt, input_kind
        As in :func:`snnc.compile`; the target must be a machine.
    recompute, streaming, parts
        As in :func:`snnc.compile`.
    activity
        Assumed activity of every spiking source, in spikes per neuron and step.
    strategy
        ``"snnc"``, or a baseline for comparison: ``"linear"``, ``"random"``, ``"metis"`` or ``"greedy"``.

    Raises
    ------
    SnncError
        The error code is explained on the page on errors.

    Examples
    --------
    >>> import snnc
    >>> net = snnc.Sequential(4, snnc.Dense(3), snnc.LIF(), snnc.Dense(2), snnc.LI())
    >>> prediction = snnc.estimate(net, "gc200", steps=10, batch=4)
    >>> 0 < prediction.plan.bound_cycles < prediction.plan.cycles
    True
    """
    start = time.perf_counter()
    check_keywords(keywords, EstimateKeywords)
    # Calibration data affect only the activity, so they are not part of the options.
    calibrate = keywords.pop("calibrate", None)
    chosen = options(target, **keywords)
    graph = as_graph(model, dt=dt, input_kind=input_kind, steps=keywords.get("steps"))
    return estimate_graph(graph, chosen, calibrate, activity=activity, strategy=strategy, start=start)


def estimate_graph(
    graph: Graph,
    chosen: CompileOptions,
    data: Path | Data | None = None,
    *,
    activity: float | None = None,
    strategy: str = "snnc",
    start: float | None = None,
) -> Estimate:
    """Plan `graph` with the options `chosen`; `start` is the value of ``time.perf_counter()`` when the command began, by default now."""
    began = time.perf_counter() if start is None else start
    if not chosen.backend.has_tiles:
        raise EstimateError(f"the target {chosen.target!r} has no tiles, so cycles cannot be estimated; give a machine (--target gc200).")
    if data is not None and activity is not None:
        raise EstimateError("the activity is either measured on data or assumed; give one of the two.")
    if strategy != "snnc" and "parts" in chosen.requested():
        raise OptionConflictError(
            f"the strategy {strategy!r} places whole populations on all tiles, but parts is {chosen.parts!r}; leave one of them out."
        )
    lowered = lower_graph(graph, chosen)
    measured = None if data is None else activity_on_data(graph, chosen, data)
    compiled = plan_program(lowered, chosen, measured if activity is None else assumed_activity(lowered.program, activity), strategy)
    assert compiled.plan is not None, "machines have plans"
    return Estimate(compiled.plan, time.perf_counter() - began, compiled)


def estimate_lines(estimate: Estimate) -> list[str]:
    """Return lower bounds of the cycles, the strategy and the planning time as lines of text."""
    data = estimate.to_data()
    return [
        f"bounds    {data['bound_cycles']:,.0f} cycles if all work and bytes were spread evenly over all tiles "
        f"({100 * data['balance']:.0f} % of the prediction)",
        f"          {data['ideal_cycles']:,.0f} cycles with ideal event loops, each id moved once, one barrier per step and direction",
        f"strategy  {data['strategy']}; planned in {data['compile_s']:.2f} s; nothing was written",
    ]
