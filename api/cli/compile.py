"""``snnc compile``: a model in, a project folder out."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from snnc.cli.common import (
    CalibrationOption,
    ConvertOption,
    DetachOption,
    DialectOption,
    DtOption,
    JsonOption,
    ModelArgument,
    PercentileOption,
    SeedOption,
    chosen_options,
)
from snnc.cli.console import note, result, result_json, working
from snnc.options.table import LOSS_OUTPUT, help_of

if TYPE_CHECKING:
    from snnc.checks.memory_estimate import MemoryEstimate
    from snnc.driver.estimating import Estimate


def compile_(
    context: typer.Context,
    model: ModelArgument,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="The folder to write.")] = None,
    target: Annotated[
        str, typer.Option("--target", help="cpu, cuda, a machine of: snnc targets, poptorch[:MACHINE], or reference.")
    ] = "gc200",
    batch: Annotated[int | None, typer.Option("--batch", help="Samples of one run or training step (default 32).")] = None,
    steps: Annotated[
        int | None, typer.Option("--steps", help="Time steps of a sequence; overrides the number that the model fixes.")
    ] = None,
    loss: Annotated[
        str | None, typer.Option("--loss", help="Makes it trainable: ce_count, mse_rate, ce_count:classes=10 … (how-to: losses)")
    ] = None,
    loss_output: Annotated[str | None, typer.Option("--loss-output", metavar="NAME", help=help_of("loss_output", LOSS_OUTPUT))] = None,
    optimizer: Annotated[
        str | None,
        typer.Option(
            "--optimizer",
            help=help_of("optimizer", "adam, adamw, sgd, rmsprop, or with numbers: sgd:0.01,0.9, adamw:0.001,weight_decay=0.1."),
        ),
    ] = None,
    lr: Annotated[float | None, typer.Option("--lr", help=help_of("lr", "Learning rate."))] = None,
    loss_scale: Annotated[
        str | None,
        typer.Option(
            "--loss-scale", help=help_of("loss_scale", "Factor of the loss's gradient, or dynamic; an overflow skips the update.")
        ),
    ] = None,
    learnable: Annotated[
        str | None,
        typer.Option("--learnable", metavar="NAMES", help=help_of("learnable", "Neuron parameters to train: beta,threshold.")),
    ] = None,
    surrogate: Annotated[
        str | None, typer.Option("--surrogate", help=help_of("surrogate", "Derivative of a spike: atan (default), fast_sigmoid:25 …"))
    ] = None,
    gradient_window: Annotated[
        str | None,
        typer.Option(
            "--gradient-window",
            metavar="LOW[,HIGH]",
            help=help_of("gradient_window", "Only neurons with LOW < membrane - threshold < HIGH take gradient."),
        ),
    ] = None,
    capacity: Annotated[
        str | None,
        typer.Option(
            "--capacity",
            metavar="SPIKES",
            help=help_of("capacity", "Spikes of a source that one window, or step, moves: 64, '5 %' of its neurons, '5 %; hidden=20'."),
        ),
    ] = None,
    parts: Annotated[
        int | None,
        typer.Option(
            "--parts", help=help_of("parts", "Cut populations with sparse connections into this many parts; 1 leaves them whole.")
        ),
    ] = None,
    mode: Annotated[str, typer.Option("--mode", help=help_of("mode", "More spikes than that: exact (further windows) or drop."))] = "exact",
    drop: Annotated[
        str, typer.Option("--drop", help=help_of("drop", "Spikes that --mode drop keeps: those of the lowest ids, or random ones."))
    ] = "lowest",
    recompute: Annotated[
        str,
        typer.Option(
            "--recompute",
            metavar="auto|off|N",
            help=help_of("recompute", "Run segments (of N iterations) forward twice, to store fewer states: auto (default), off or N."),
        ),
    ] = "auto",
    streaming: Annotated[
        str,
        typer.Option(
            "--streaming",
            metavar="auto|off|inputs|boundaries|history",
            help=help_of(
                "streaming",
                "Data that may be stored outside the tiles if they are too small: auto (default), off, inputs, boundaries "
                "(first states of segments), history (all their states).",
            ),
        ),
    ] = "auto",
    memory: Annotated[
        str | None,
        typer.Option("--memory", metavar="BYTES", help=help_of("memory", "Memory limit of a training step, such as 500M.")),
    ] = None,
    threads: Annotated[int | None, typer.Option("--threads", help=help_of("threads", "Number of threads."))] = None,
    truncate: Annotated[
        int | None, typer.Option("--truncate", metavar="K", help=help_of("truncate", "Cut the gradient every K steps (truncated BPTT)."))
    ] = None,
    input_gradients: Annotated[
        bool,
        typer.Option("--input-gradients", help=help_of("input_gradients", "Return gradients of inputs, for layers before it.")),
    ] = False,
    precision: Annotated[
        str,
        typer.Option(
            "--precision",
            help=help_of("precision", "float32, bfloat16 or float16; what is rounded depends on the target."),
        ),
    ] = "float32",
    data: Annotated[
        Path | None,
        typer.Option(
            "--data", help=help_of("calibrate", "An npz archive with inputs, to measure how often neurons fire; with --run, on any target.")
        ),
    ] = None,
    input_kind: Annotated[str | None, typer.Option("--input-kind", help="What the inputs hold: spikes (0 or 1) or values.")] = None,
    estimate_only: Annotated[bool, typer.Option("--estimate-only", help="Plan and predict; write nothing.")] = False,
    strategy: Annotated[
        str, typer.Option("--strategy", help="With --estimate-only: snnc, or a baseline: linear, random, metis, greedy.")
    ] = "snnc",
    activity: Annotated[
        float | None, typer.Option("--activity", help="With --estimate-only: assumed spikes per neuron and step (default 0.05).")
    ] = None,
    run: Annotated[bool, typer.Option("--run", help="Build it, run one batch and compare with the reference.")] = False,
    dump_after: Annotated[str | None, typer.Option("--dump-after", metavar="PASS", help="Print the graph after a pass and stop.")] = None,
    ann2snn: ConvertOption = False,
    calibration: CalibrationOption = None,
    percentile: PercentileOption = None,
    seed: SeedOption = 0,
    dt: DtOption = None,
    dialect: DialectOption = None,
    detach: DetachOption = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Delete the trained weights of the replaced project; by default they are kept in before-1/.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Compile a model for a target: read it, map it onto the tiles of a machine, and write the program, its plan and its report.

    Example: snnc compile model.onnx --target gc200 -o build/
    """
    from snnc.backends.folders.project import check_replaceable
    from snnc.checks.memory_estimate import estimate_memory
    from snnc.cli.compile_summary import as_data, as_text, graph_data
    from snnc.driver.compiling import compile_to_folder
    from snnc.driver.converting import ConversionRequest, graph_for
    from snnc.driver.estimating import estimate_graph
    from snnc.driver.learnable import with_learnable
    from snnc.errors import CommandLineError, OptionConflictError
    from snnc.options.compile_options import options

    start = time.perf_counter()
    chosen = options(target, **chosen_options(context) | {"calibrate": data}, lr=lr, loss_scale=loss_scale, trial=run)
    if overwrite and (output is None or estimate_only):
        raise OptionConflictError("--overwrite is for a folder that is replaced; give -o, without --estimate-only, or leave it out.")
    _check_estimate(estimate_only, run=run, strategy=strategy, activity=activity)
    _check_written(output, estimate_only=estimate_only, dump_after=dump_after, run=run)
    if output is not None:
        check_replaceable(output)
    elif not estimate_only and dump_after is None:
        raise CommandLineError("missing option '-o' / '--output', the folder to write; or --estimate-only; see snnc compile --help.")
    conversion = ConversionRequest(ann2snn, calibration, percentile, steps if ann2snn else None)
    with working("reading"):
        graph = graph_for(model, conversion, dt=dt, dialect=dialect, detach=detach, input_kind=input_kind, steps=steps)
        graph = with_learnable(graph, learnable)
    if dump_after is not None:
        result_json(graph_data(graph, dump_after))
        if output is not None:
            note(f"note: --dump-after stops here; nothing is written to {output}.")
        return
    for text in graph.assumptions:
        note(f"note: {text}")
    if estimate_only and chosen.backend.native and strategy == "snnc" and activity is None:
        with working("estimating"):
            needed = estimate_memory(graph, chosen)
        _show_needed(needed, as_json)
        return
    if estimate_only:
        with working("planning"):
            found = estimate_graph(graph, chosen, data, activity=activity, strategy=strategy, start=start)
        _show(found, as_json)
        return
    assert output is not None, "checked above"
    with working("compiling"):
        compiled = compile_to_folder(graph, chosen, output, data, overwrite=overwrite)
    ran = None
    if run:
        from snnc.checks.trial import run_once

        with working("building and running"):
            ran = run_once(output, data)
    if as_json:
        result_json(as_data(compiled, output, ran))
        return
    for line in as_text(compiled, output, ran):
        result(line)


def _show_needed(found: MemoryEstimate, as_json: bool) -> None:
    if as_json:
        result_json(found.to_data())
        return
    for line in found.lines():
        result(line)


def _check_estimate(wanted: bool, *, run: bool, strategy: str, activity: float | None) -> None:
    """Refuse options that need an estimate, and options that an estimate does not accept."""
    from snnc.errors import EstimateError

    if wanted and run:
        raise EstimateError("--estimate-only emits no program for --run; leave one of them out.")
    if not wanted and (strategy != "snnc" or activity is not None):
        raise EstimateError("--strategy and --activity are for estimates; add --estimate-only.")


def _check_written(output: Path | None, *, estimate_only: bool, dump_after: str | None, run: bool) -> None:
    """Refuse options that need a project if none is written."""
    from snnc.errors import OptionConflictError

    if estimate_only and output is not None:
        raise OptionConflictError(f"--estimate-only writes no project, so -o {output} has no effect; leave one of them out.")
    if dump_after is not None and (run or estimate_only):
        what = "--run" if run else "--estimate-only"
        raise OptionConflictError(f"--dump-after stops after a pass, so {what} has no effect; leave one of them out.")


def _show(found: Estimate, as_json: bool) -> None:
    from snnc.cli.compile_summary import plan_lines
    from snnc.driver.estimating import estimate_lines

    if as_json:
        result_json(found.to_data())
        return
    for line in (*plan_lines(found.plan), *estimate_lines(found)):
        result(line)
