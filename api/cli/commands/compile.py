"""``snnc compile``: compile a model into a project folder."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from snnc.cli import common
from snnc.cli.console import note, result_json, show, working
from snnc.cli.parameters import command, option, table_options

if TYPE_CHECKING:
    from snnc.compiler.ir.graph import Graph
    from snnc.options.compile_options import CompileOptions


@dataclass(frozen=True)
class CompileArguments:
    """Arguments of ``snnc compile``."""

    model: common.ModelArgument
    output: Path | None = option("The folder to write.", "-o", "--output")
    target: str = option(
        "cpu, cuda, a machine listed by snnc targets, poptorch[:MACHINE], or reference.",
        default="gc200",
        autocompletion=common.names_of_targets,
    )
    options: dict[str, Any] = field(default_factory=dict, metadata=table_options())
    input_kind: common.InputKindOption = None
    estimate_only: bool = option("Predict memory and time; write nothing.", default=False)
    strategy: str = option("With --estimate-only: snnc, or a baseline: linear, random, metis, greedy.", default="snnc")
    activity: float | None = option("With --estimate-only: assumed activity, in spikes per neuron and step (default 0.05).")
    run: bool = option("Build the project, run one batch and compare its outputs with the reference.", default=False)
    dump_after: str | None = option("Print the graph after a pass as JSON, and stop.", metavar="PASS")
    ann2snn: common.ConvertOption = False
    calibration: common.CalibrationOption = None
    percentile: common.PercentileOption = None
    seed: int = option("Seed for all random numbers.", default=0, min=0)
    dt: common.DtOption = None
    dialect: common.DialectOption = None
    detach: common.DetachOption = None
    overwrite: bool = option("Delete the trained weights of the replaced project; by default they move to before-1/.", default=False)
    as_json: common.JsonOption = False


@command(CompileArguments)
def compile_(context: typer.Context, args: CompileArguments) -> None:
    """Compile a model for a target, and write its program and, for a machine with tiles, its plan into a project folder.

    Example: snnc compile model.onnx --target gc200 -o build/
    """
    from snnc.cli.compile_summary import graph_data
    from snnc.options.compile_options import options

    start = time.perf_counter()
    chosen = options(args.target, **args.options, seed=args.seed, trial=args.run)
    _check_estimate(args)
    _check_output(args)
    with working("reading"):
        graph = _read(args)
    if args.dump_after is not None:
        result_json(graph_data(graph, args.dump_after))
        if args.output is not None:
            note(f"note: --dump-after stops here; nothing is written to {args.output}.")
        return
    for text in graph.assumptions:
        note(f"note: {text}")
    if args.output is None:
        _estimate(graph, chosen, args, start)
    else:
        _compile(graph, chosen, args, args.output)


def _read(args: CompileArguments) -> Graph:
    from snnc.driver.converting import ConversionRequest, graph_for
    from snnc.driver.learnable import with_learnable

    steps = args.options["steps"]
    conversion = ConversionRequest(args.ann2snn, args.calibration, args.percentile, steps if args.ann2snn else None)
    graph = graph_for(args.model, conversion, dt=args.dt, dialect=args.dialect, detach=args.detach, input_kind=args.input_kind, steps=steps)
    return with_learnable(graph, args.options["learnable"])


def _estimate(graph: Graph, chosen: CompileOptions, args: CompileArguments, start: float) -> None:
    """Print predicted costs; `start` is the value of ``time.perf_counter()`` at the start of the command."""
    from snnc.checks.memory_estimate import estimate_memory
    from snnc.cli.compile_summary import plan_lines
    from snnc.driver.estimating import estimate_graph, estimate_lines

    if chosen.backend.native and args.strategy == "snnc" and args.activity is None:
        with working("estimating"):
            needed = estimate_memory(graph, chosen)
        show(args.as_json, lambda: asdict(needed), needed.lines)
        return
    with working("planning"):
        estimate = estimate_graph(graph, chosen, args.options["calibrate"], activity=args.activity, strategy=args.strategy, start=start)
    show(args.as_json, estimate.to_data, lambda: [*plan_lines(estimate.plan), *estimate_lines(estimate)])


def _compile(graph: Graph, chosen: CompileOptions, args: CompileArguments, output: Path) -> None:
    from snnc.cli.compile_summary import as_data, as_text
    from snnc.driver.compiling import compile_to_folder

    data = args.options["calibrate"]
    with working("compiling"):
        compiled = compile_to_folder(graph, chosen, output, data, overwrite=args.overwrite)
    ran = None
    if args.run:
        from snnc.checks.trial import run_once

        with working("building and running"):
            ran = run_once(output, data)
    show(args.as_json, lambda: as_data(compiled, output, ran), lambda: as_text(compiled, output, ran))


def _check_estimate(args: CompileArguments) -> None:
    from snnc.errors import EstimateError, OptionConflictError

    if args.overwrite and (args.output is None or args.estimate_only):
        raise OptionConflictError("--overwrite affects only a project that -o replaces; give -o, without --estimate-only, or omit it.")
    if args.estimate_only and args.run:
        raise EstimateError("--estimate-only emits no program for --run to execute; leave one of them out.")
    if not args.estimate_only and (args.strategy != "snnc" or args.activity is not None):
        raise EstimateError("--strategy and --activity are for estimates; add --estimate-only.")


def _check_output(args: CompileArguments) -> None:
    from snnc.backends.folders.project import check_replaceable
    from snnc.errors import CommandLineError, OptionConflictError

    if args.estimate_only and args.output is not None:
        raise OptionConflictError(f"--estimate-only writes no project, so -o {args.output} has no effect; leave one of them out.")
    if args.dump_after is not None and (args.run or args.estimate_only):
        what = "--run" if args.run else "--estimate-only"
        raise OptionConflictError(f"--dump-after stops after a pass, so {what} has no effect; leave one of them out.")
    if args.output is not None:
        check_replaceable(args.output)
    elif not args.estimate_only and args.dump_after is None:
        raise CommandLineError("missing option '-o' / '--output', the folder to write; or --estimate-only; see snnc compile --help.")
