"""``snnc explore``: predict the cost of one network on several machines, with several batch sizes and activities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import typer

from snnc.cli.common import DetachOption, DialectOption, DtOption, InputKindOption, ModelArgument
from snnc.cli.console import note, result, working, write_json
from snnc.cli.parameters import command, option, table_options

if TYPE_CHECKING:
    from snnc.exploring import ExplorationPoint

Number = TypeVar("Number", int, float)
HEAD: Final = (
    f"{'target':10} {'batch':>6} {'activity':>8} {'samples/s':>12} {'step ms':>10} {'of bound':>8} {'peak tile':>10} "
    f"{'tiles':>7} {'IPUs':>4} {'parts':>5} {'took':>7}"
)


@dataclass(frozen=True)
class ExploreArguments:
    """Arguments of ``snnc explore``."""

    model: ModelArgument
    targets: str = option("Machines listed by snnc targets, or TOML files, separated by commas.", default="gc200,bow,pod4,pod16")
    batch: str = option("Batch sizes, separated by commas.", default="32")
    activity: str | None = option("Assumed activities, in spikes per neuron and step, separated by commas (default 0.05).")
    options: dict[str, Any] = field(
        default_factory=dict,
        metadata=table_options(
            *("steps", "loss", "loss_output", "optimizer", "surrogate", "capacity", "mode"),
            loss="Predict a training step with this loss: ce_count, ce_rate, mse_count …",
            capacity="Maximum number of spikes of a source in one window, for one sample and step.",
            mode="Treatment of spikes beyond the capacity: exact (further windows) or drop.",
        ),
    )
    strategy: str = option("snnc, or a baseline: linear, random, metis, greedy.", default="snnc")
    input_kind: InputKindOption = None
    json_file: Path | None = option("Write the points as JSON; - for stdout.", "--json", metavar="FILE")
    plot: Path | None = option(
        "Draw throughput, memory, and the ratio of the bound to the predicted time in this .html or .svg file.", metavar="FILE"
    )
    dt: DtOption = None
    dialect: DialectOption = None
    detach: DetachOption = None


@command(ExploreArguments)
def explore(context: typer.Context, args: ExploreArguments) -> None:
    """Predict throughput and memory of a model on several machines, for several batch sizes and activities, without emitting code.

    One row is printed for each combination. Its column "of bound" divides the time of a step whose work is spread evenly over all tiles
    (the bound) by the predicted time. If the network does not fit, the row shows the reason. With a loss, a step is a training step;
    without one, a forward pass.

    Example: snnc explore model.onnx --targets gc200,bow,pod4 --batch 1,16,64 --activity 0.01,0.1 --plot explore.html
    """
    from snnc.data.whole_files import check_output, write_text
    from snnc.driver.loading import as_graph
    from snnc.errors import ExploreError
    from snnc.exploring import explore_graph
    from snnc.exploring.plot import FORMATS, draw
    from snnc.options.compile_options import options

    machines = [name.strip() for name in args.targets.split(",") if name.strip()]
    batches = _numbers("--batch", args.batch, int)
    activities = [None] if args.activity is None else _numbers("--activity", args.activity, float)
    if args.plot is not None and args.plot.suffix.lower().removeprefix(".") not in FORMATS:
        raise ExploreError(f"{str(args.plot)!r} has an unknown suffix; use {' or '.join('.' + f for f in FORMATS)}.")
    for output in (args.json_file, args.plot):
        check_output(output, args.model)
    chosen = options(machines[0] if machines else "gc200", **args.options)
    steps = args.options["steps"]
    with working("reading"):
        graph = as_graph(args.model, dt=args.dt, dialect=args.dialect, detach=args.detach, input_kind=args.input_kind, steps=steps)
    show: Callable[[str], None] = note if str(args.json_file) == "-" else result
    points: list[ExplorationPoint] = []
    for point in explore_graph(graph, chosen, machines, batches, activities, strategy=args.strategy):
        if not points:
            show(HEAD)
        points.append(point)
        show(_line(point))
    write_json(args.json_file, {"model": graph.name, "points": [point.to_data() for point in points]})
    if args.plot is not None:
        write_text(args.plot, draw(points, graph.name, args.plot.suffix.lower().removeprefix(".")))


def _line(point: ExplorationPoint) -> str:
    activity = "default" if point.activity is None else f"{100 * point.activity:g} %"
    start = f"{point.target:10} {point.batch:6d} {activity:>8} "
    if point.estimate is None:
        return f"{start}does not fit: {point.reason.split(' Try ')[0].removeprefix('the network does not fit on ')}"
    data = point.estimate.to_data()
    return start + (
        f"{data['samples_per_s']:12,.0f} {data['step_ms']:10.4g} {100 * data['balance']:6.0f} % "
        f"{data['peak_tile_bytes'] / 1024:6,.0f} KiB {data['tiles_used']:7,d} {data['ipus']:4d} "
        f"{max(data['parts'].values(), default=1):5d} {point.point_s:5.2f} s"
    )


def _numbers(option: str, text: str, kind: type[Number]) -> list[Number]:
    from snnc.errors import ExploreError

    try:
        return [kind(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise ExploreError(f"{option} {text!r} is not a list of numbers; separate them by commas, as in {option} 1,16,64.") from None
