"""Compare predicted step times of the published IPU program (:mod:`snnc.benchmarks.published`) with its log, for 12 nets.

Predictions are made for two clocks, with and without merging of adjacent copies, because the log records neither of these choices. They are
also made for three costs of a fragment (a contiguous piece of memory in an exchange), with the simulated activity and with every capacity
in use. Nothing in the model is fitted to the log. The model's constants and their sources:

==================================  ==================================================================================
sizes, layouts, loops, supersteps   public code of ``jrfinkbeiner/graphcore_snn``, commit 2b0fe90 (the version that ran)
vertex start, sync, superstep       target file (PopLibs performance estimates, Poplar's IPU model)
9 cycles per fragment               target file: the fixed rule; public sources give values from 6 to 20
elementwise, copies, slices         PopLibs performance estimates (:mod:`snnc.benchmarks.published.options`)
mappings of sliced, linear tensors  ``createSliceableTensor`` and ``calcLinearTileMapping`` of PopLibs 3.4
cycles of compiled loops            mean of naive and ideal code (:class:`~snnc.benchmarks.published.options.LoopCost`)
activity                            :func:`~snnc.benchmarks.published.simulate`, weights within the limits that the log prints
==================================  ==================================================================================
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import product
from typing import Final

from snnc.benchmarks.log import LoggedRun, logged_runs
from snnc.benchmarks.nets import benchmark
from snnc.benchmarks.published import PublishedNet, PublishedOptions, PublishedPrediction, predict_published
from snnc.compiler.machines import load_target

TARGETS: Final = ("gc200", "bow")
"""Machines with clocks of 1.33 and 1.85 GHz, otherwise equal. The second is more likely: the log was committed together with "gc bow"
evaluations on the manufacturer's machines (commits 116eaec to e4fd993)."""
FRAGMENTS: Final = (6.0, 9.0, 20.0)
"""Cycles per fragment for which predictions are made."""
RULE: Final = 9.0
"""Cycles per fragment in the target file."""


@dataclass(frozen=True)
class LoggedPoint:
    """One prediction of a logged net; all times except `logged_ms` are predicted, and `ratio` is predicted / logged.

    `n0` is the mean number of spikes of each layer per step and sample, and `n1` the mean number of neurons that receive a gradient.
    """

    net: str
    target: str
    strategy: str
    activity: str
    merged_copies: bool
    fragment_cycles: float
    clock_ghz: float
    step_cycles: float
    predicted_ms: float
    logged_ms: float
    ratio: float
    n0: tuple[float, ...]
    n1: tuple[float, ...]


def simulated_net(run: LoggedRun) -> PublishedNet:
    """Return the net of a run, with the activity that was counted in a simulation of it."""
    net = benchmark(run.name).published
    assert net is not None
    return net


def predict(net: PublishedNet, target: str, *, merged: bool, fragment_cycles: float = RULE) -> PublishedPrediction:
    """Predict one training step of a logged net; `merged` is whether adjacent copies are merged."""
    return predict_published(net, load_target(target), PublishedOptions(fragment_cycles=fragment_cycles, merge_copies=merged))


def points(nets: Mapping[str, PublishedNet] | None = None) -> Iterator[LoggedPoint]:
    """Yield all predictions, in the order of the log; `nets` contains results of :func:`simulated_net` by name (None: simulate)."""
    for run in logged_runs():
        net = nets[run.name] if nets else simulated_net(run)
        for activity, chosen in (("simulated", net), ("n = K", net.full())):
            for target, merged, fragment in product(TARGETS, (True, False), FRAGMENTS):
                yield _point(run, activity, predict(chosen, target, merged=merged, fragment_cycles=fragment))


def _point(run: LoggedRun, activity: str, prediction: PublishedPrediction) -> LoggedPoint:
    milliseconds, options = prediction.milliseconds(), prediction.options
    return LoggedPoint(
        net=run.name,
        target=prediction.target.name,
        strategy="published",
        activity=activity,
        merged_copies=options.merge_copies,
        fragment_cycles=RULE if options.fragment_cycles is None else options.fragment_cycles,
        clock_ghz=prediction.target.clock_hz / 1e9,
        step_cycles=prediction.step_cycles,
        predicted_ms=milliseconds,
        logged_ms=run.logged_ms,
        ratio=milliseconds / run.logged_ms,
        n0=tuple(layer.spikes for layer in prediction.net.layers),
        n1=tuple(layer.gradients for layer in prediction.net.layers),
    )


def rows() -> list[dict[str, object]]:
    """Return all predictions as JSON data."""
    return [asdict(point) for point in points()]
