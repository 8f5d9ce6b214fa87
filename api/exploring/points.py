"""Plan a network for every combination of machine, batch size and activity; the network is read and lowered only once."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from snnc.backends.registry import backend_of, named
from snnc.compiler.ir.graph import Graph, Kind
from snnc.compiler.ir.plan import Mode
from snnc.compiler.losses import Loss
from snnc.compiler.losses.optimizers import Optimizer
from snnc.compiler.lowering.capacities import CapacityArgument
from snnc.compiler.neurons.surrogates.surrogate import Surrogate
from snnc.compiler.tiles.errors import TooBigError
from snnc.compiler.tiles.planning.ordering import Common
from snnc.driver.activity import assumed_activity
from snnc.driver.estimating import Estimate
from snnc.driver.loading import Model, as_graph
from snnc.driver.lowering import lower_graph
from snnc.driver.stages import plan_program
from snnc.errors import ExploreError
from snnc.options.compile_options import CompileOptions, options


@dataclass(frozen=True, eq=False)
class ExplorationPoint:
    """One combination of machine, batch size and activity (None: snnc's default), and its result.

    `estimate` is None if the network does not fit; `reason` and `code` are then the text and the code of the error. `point_s` is the number
    of seconds that the planning took.
    """

    target: str
    batch: int
    activity: float | None
    estimate: Estimate | None
    reason: str
    code: str
    point_s: float

    @property
    def fits(self) -> bool:
        """Whether the network fits."""
        return self.estimate is not None

    def to_data(self) -> dict[str, Any]:
        """Return the point as JSON types."""
        data: dict[str, Any] = {"asked": self.target, "batch": self.batch, "assumed_activity": self.activity, "fits": self.fits}
        if self.estimate is None:
            data |= {"target": self.target, "reason": self.reason, "code": self.code}
        else:
            data = {**self.estimate.to_data(), **data}
        return data | {"point_s": self.point_s}


def explore(
    model: Model,
    targets: Sequence[str],
    *,
    batches: Sequence[int] = (32,),
    activities: Sequence[float | None] = (None,),
    steps: int | None = None,
    loss: str | Loss | None = None,
    optimizer: str | Optimizer | None = None,
    surrogate: str | Surrogate | None = None,
    capacity: CapacityArgument | None = None,
    mode: Mode = "exact",
    strategy: str = "snnc",
    dt: float | None = None,
    input_kind: Kind | None = None,
    loss_output: str | None = None,
) -> tuple[ExplorationPoint, ...]:
    """Predict the cost of a network on several machines, for several batch sizes and activities, without emitting anything.

    Parameters
    ----------
    model, steps, loss, loss_output, optimizer, surrogate, capacity, mode, dt, input_kind
        As in :func:`snnc.compile`.
    targets
        Names of machines, or paths of TOML files that describe them.
    batches
        Numbers of samples in one run or training step.
    activities
        Assumed activities, in spikes per neuron and step; None for snnc's default.
    strategy
        ``"snnc"``, or a baseline for comparison.

    Returns
    -------
    tuple of ExplorationPoint
        One per combination: for each target in the given order, each batch size, and for each of these, each activity. If the network
        does not fit, the point contains the reason.

    Raises
    ------
    SnncError
        The error code is explained on the page on errors.

    Examples
    --------
    >>> import snnc
    >>> net = snnc.Sequential(4, snnc.Dense(3), snnc.LIF(), snnc.Dense(2), snnc.LI())
    >>> [point.batch for point in snnc.explore(net, ["gc200"], batches=[1, 2], steps=5)]
    [1, 2]
    """
    first = targets[0] if targets else "gc200"
    chosen = options(
        first, steps=steps, loss=loss, optimizer=optimizer, surrogate=surrogate, capacity=capacity, mode=mode, loss_output=loss_output
    )
    graph = as_graph(model, dt=dt, input_kind=input_kind, steps=steps)
    return tuple(explore_graph(graph, chosen, targets, batches, activities, strategy=strategy))


def explore_graph(
    graph: Graph,
    chosen: CompileOptions,
    targets: Sequence[str],
    batches: Sequence[int],
    activities: Sequence[float | None],
    *,
    strategy: str = "snnc",
) -> Iterator[ExplorationPoint]:
    """Yield each point as soon as it is planned; raise ExploreError if a list is empty, or contains a target without tiles."""
    for what, values in (("target", targets), ("batch size", batches), ("activity", activities)):
        if not values:
            raise ExploreError(f"no {what} to explore; give at least one.")
    if not all(backend_of(target).has_tiles for target in targets):
        *others, last = (backend.name for backend in named() if not backend.has_tiles)
        raise ExploreError(f"{', '.join(others)} and {last} have no tiles and no cycles; give machines (--targets gc200,bow).")
    lowered = lower_graph(graph, replace(chosen, target=targets[0]))
    assumed = {a: None if a is None else assumed_activity(lowered.program, a) for a in activities}
    common = Common()
    for target, batch, activity in itertools.product(targets, batches, activities):
        start = time.perf_counter()
        estimate, reason, code = None, "", ""
        try:
            plan = plan_program(lowered, replace(chosen, target=target, batch=batch), assumed[activity], strategy, common).plan
            assert plan is not None, "the target has tiles"
            estimate = Estimate(plan, time.perf_counter() - start)
        except TooBigError as error:
            reason, code = error.text, error.code
        yield ExplorationPoint(target, batch, activity, estimate, reason, code, time.perf_counter() - start)
