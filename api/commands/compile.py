"""``snnc compile``: a model in, a project folder out."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from snnc.commands.common import (
    CalibrationOption,
    ConvertOption,
    DialectOption,
    DtOption,
    JsonOption,
    ModelArgument,
    PercentileOption,
    SeedOption,
)
from snnc.console import note, result, result_json, working

if TYPE_CHECKING:
    from snnc.estimating import Estimate


def compile_(
    model: ModelArgument,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="The folder to write.")] = None,
    target: Annotated[
        str, typer.Option("--target", help="cpu, cuda, a machine of: snnc targets, poptorch[:MACHINE], or reference.")
    ] = "gc200",
    batch: Annotated[int | None, typer.Option("--batch", help="Samples of one run or training step (default 32).")] = None,
    steps: Annotated[int | None, typer.Option("--steps", help="Time steps of a sequence, where the model leaves it open.")] = None,
    loss: Annotated[str | None, typer.Option("--loss", help="Makes it trainable: ce_count, ce_rate, ce_mean_membrane, mse_count …")] = None,
    optimizer: Annotated[str | None, typer.Option("--optimizer", help="adam, sgd, or with numbers: adam:0.001, sgd:0.01,0.9.")] = None,
    lr: Annotated[float | None, typer.Option("--lr", help="Learning rate.")] = None,
    surrogate: Annotated[str | None, typer.Option("--surrogate", help="Derivative of a spike: atan (default), fast_sigmoid:25 …")] = None,
    gradient_window: Annotated[
        str | None,
        typer.Option("--gradient-window", metavar="LOW[,HIGH]", help="Only neurons with LOW < membrane - threshold < HIGH take gradient."),
    ] = None,
    capacity: Annotated[int | None, typer.Option("--capacity", help="Spikes a sample that one window moves.")] = None,
    parts: Annotated[
        int | None, typer.Option("--parts", help="Cut populations with sparse connections into this many parts; 1: leave them whole.")
    ] = None,
    mode: Annotated[str, typer.Option("--mode", help="More spikes than that: exact (further windows) or drop.")] = "exact",
    recompute: Annotated[
        str, typer.Option("--recompute", metavar="auto|off|N", help="Run segments (of N iterations) forward again, to keep less: auto.")
    ] = "auto",
    streaming: Annotated[
        str,
        typer.Option(
            "--streaming",
            metavar="auto|off|inputs|boundaries|history",
            help="What may wait outside the tiles where nothing fits: inputs; what segments begin with; their states: auto.",
        ),
    ] = "auto",
    overlap_host_io: Annotated[
        str,
        typer.Option(
            "--overlap-host-io", metavar="auto|on|off", help="The next step's inputs come while this one runs, onto tiles set aside: auto."
        ),
    ] = "auto",
    num_io_tiles: Annotated[int | None, typer.Option("--num-io-tiles", help="How many tiles of each chip are set aside for that.")] = None,
    memory: Annotated[
        str | None,
        typer.Option("--memory", metavar="BYTES", help="Targets cpu, cuda: what a training step may take, as in 500M."),
    ] = None,
    threads: Annotated[int | None, typer.Option("--threads", help="Target cpu: how many threads.")] = None,
    truncate: Annotated[
        int | None, typer.Option("--truncate", metavar="K", help="Targets cpu and reference: cut the gradient every K steps.")
    ] = None,
    precision: Annotated[
        str,
        typer.Option(
            "--precision",
            help="Targets cpu, cuda: float32, or bfloat16 dense products (cuda: backward ones); cuda: float16 products and past.",
        ),
    ] = "float32",
    data: Annotated[Path | None, typer.Option("--data", help="An npz archive with inputs, to measure how often neurons fire.")] = None,
    input_kind: Annotated[str | None, typer.Option("--input-kind", help="What the inputs hold: spikes (0 or 1) or values.")] = None,
    estimate_only: Annotated[bool, typer.Option("--estimate-only", help="Plan and predict; write nothing.")] = False,
    strategy: Annotated[
        str, typer.Option("--strategy", help="With --estimate-only: snnc, or a baseline: linear, random, metis, greedy.")
    ] = "snnc",
    activity: Annotated[
        float | None, typer.Option("--activity", help="With --estimate-only: spikes a neuron and step to assume (default 0.05).")
    ] = None,
    run: Annotated[bool, typer.Option("--run", help="Build it, run one batch and compare with the reference.")] = False,
    dump_after: Annotated[str | None, typer.Option("--dump-after", metavar="PASS", help="Print the graph behind a pass and stop.")] = None,
    ann2snn: ConvertOption = False,
    calibration: CalibrationOption = None,
    percentile: PercentileOption = None,
    seed: SeedOption = 0,
    dt: DtOption = None,
    dialect: DialectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compile a model for a machine: understand it, map it onto the tiles, emit a program with its plan and report.

    Example: snnc compile model.onnx --target gc200 -o build/
    """
    from snnc.backends.project import check_replaceable
    from snnc.compiling import compile_to_folder
    from snnc.converting import ConversionRequest, graph_for
    from snnc.errors import CommandLineError
    from snnc.estimating import estimate_graph
    from snnc.memory_estimate import estimate_memory
    from snnc.options import CPU, CUDA, options
    from snnc.summary import as_data, as_text, graph_data

    start = time.perf_counter()
    chosen = options(
        target,
        steps,
        batch,
        loss,
        optimizer,
        surrogate,
        seed,
        capacity,
        mode,
        lr=lr,
        gradient_window=gradient_window,
        recompute=recompute,
        parts=parts,
        streaming=streaming,
        memory=memory,
        threads=threads,
        overlap_host_io=overlap_host_io,
        num_io_tiles=num_io_tiles,
        truncate=truncate,
        precision=precision,
    )
    _check_estimate(estimate_only, run=run, strategy=strategy, activity=activity)
    if output is not None:
        check_replaceable(output)
    elif not estimate_only and dump_after is None:
        raise CommandLineError("missing option '-o' / '--output', the folder to write; or --estimate-only; see snnc compile --help.")
    conversion = ConversionRequest(ann2snn, calibration, percentile, steps if ann2snn else None)
    with working("reading"):
        graph = graph_for(model, conversion, dt=dt, dialect=dialect, input_kind=input_kind)
    if dump_after is not None:
        result_json(graph_data(graph, dump_after))
        return
    for text in graph.assumptions:
        note(f"note: {text}")
    if estimate_only and chosen.target in (CPU, CUDA) and strategy == "snnc" and activity is None:
        with working("estimating"):
            needed = estimate_memory(graph, chosen)
        result_json(needed.to_data()) if as_json else result(needed.text())
        return
    if estimate_only:
        with working("planning"):
            found = estimate_graph(graph, chosen, data, activity=activity, strategy=strategy, start=start)
        _show(found, as_json)
        return
    assert output is not None, "checked above"
    with working("compiling"):
        compiled = compile_to_folder(graph, chosen, output, data)
    ran = None
    if run:
        from snnc.trial import run_once

        with working("building and running"):
            ran = run_once(output, data)
    if as_json:
        result_json(as_data(compiled, output, ran))
        return
    for line in as_text(compiled, output, ran):
        result(line)


def _check_estimate(wanted: bool, *, run: bool, strategy: str, activity: float | None) -> None:
    """Refuse options that need an estimate, or that an estimate cannot have."""
    from snnc.errors import EstimateError

    if wanted and run:
        raise EstimateError("--estimate-only emits no program that --run could run; leave one of them out.")
    if not wanted and (strategy != "snnc" or activity is not None):
        raise EstimateError("--strategy and --activity are for estimates; add --estimate-only.")


def _show(found: Estimate, as_json: bool) -> None:
    from snnc.estimating import estimate_lines
    from snnc.summary import plan_lines

    if as_json:
        result_json(found.to_data())
        return
    for line in (*plan_lines(found.plan), *estimate_lines(found)):
        result(line)
