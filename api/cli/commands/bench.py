"""``snnc bench``: measurements of mappings, compile times and training steps."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from snnc.cli.common import refuse_without_effect
from snnc.cli.console import note, result


def bench(
    context: typer.Context,
    suite: Annotated[
        str,
        typer.Option(
            "--suite",
            help="mapping: strategies compared; compile: seconds and memory; cpu, cuda: training steps compared with other frameworks; "
            "paper: the networks of arXiv 2311.04386, measured on a GPU and predicted for IPUs.",
        ),
    ] = "mapping",
    nets: Annotated[
        str, typer.Option("--nets", metavar="PATTERNS", help="Only nets with these names, separated by commas: 'logged-*', 'w1,shd-x*'.")
    ] = "*",
    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the rows as JSON; - for stdout.")] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="With --suite compile, cpu or cuda: draw the rows in this .svg file.")
    ] = None,
    listing: Annotated[bool, typer.Option("--list", help="Print the names of the nets that would run, and stop.")] = False,
    engines: Annotated[
        str, typer.Option("--engines", metavar="NAMES", help="With --suite cpu or cuda: only these, as in snnc:exact,torch,jax.")
    ] = "",
    rounds: Annotated[
        int | None, typer.Option("--rounds", min=1, help="With --suite cpu or cuda: turns of each engine (default 7).")
    ] = None,
    threads: Annotated[
        int | None, typer.Option("--threads", min=1, help="With --suite cpu or cuda: cores of each engine (default all).")
    ] = None,
    ways: Annotated[
        str | None,
        typer.Option(
            "--ways",
            metavar="WAYS",
            help="With --suite cuda: measure only the fastest variant of each engine, found by a short "
            "trial (fastest, the default), or all.",
        ),
    ] = None,
    first_step: Annotated[
        float | None,
        typer.Option(
            "--first-step",
            min=1,
            metavar="SECONDS",
            help="With --suite cuda: skip variants that take more than this many seconds to compile (default 60).",
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="With --suite cuda: keep the rows that the --json file holds, and measure the missing ones.")
    ] = False,
) -> None:
    """Measure mappings by snnc and by baselines (predicted), compile times, or training steps on this machine and in other frameworks.

    Every row runs in a separate process, so its seconds and its peak memory belong to it alone. A failure is a row with an error. The
    file is rewritten after each row, so an interrupted run keeps the rows that it measured.
    In the suites cpu and cuda all engines train the same network and take turns; before anything is timed, their numbers must agree. cuda
    needs a GPU and nvcc. With SNNC_CUDA_ON_HOST=1 the processor replaces the GPU: this checks the suite, but its times mean nothing. Slow
    preparations (building snnc's
    programs, compilers of frameworks) run in parallel before anything is timed.

    Example: snnc bench --suite mapping --nets 'logged-*' --json rows.json

    The suite paper covers the networks of arXiv 2311.04386. It predicts their training steps on IPUs and measures them on a GPU, if there
    is one, in separate columns.

    Example: snnc bench --suite cpu --nets 'w1*' --json rows.json --plot rows.svg
    """
    if suite not in ("cpu", "cuda"):
        _check_only_cpu(engines, rounds, threads)
    if suite != "cuda":
        _check_only_cuda(ways, first_step, resume)
    if listing:
        refuse_without_effect(context, "--list", ("json_file", "plot", "engines", "rounds", "threads", "ways", "first_step", "resume"))
    names = [name.strip() for name in engines.split(",") if name.strip()]
    if suite == "cpu":
        _on_cpu(nets, json_file, plot, listing, names, rounds, threads)
        return
    if suite == "cuda":
        _on_cuda(nets, json_file, plot, listing, names, rounds, threads, ways, first_step, resume)
        return
    if suite == "paper":
        _paper(nets, json_file, plot, listing)
        return
    from snnc.benchmarks.repeated import repeated
    from snnc.benchmarks.suites import run, tasks
    from snnc.benchmarks.table import compile_lines, mapping_lines

    chosen = tasks(suite, nets)
    _check_plot(suite, plot)
    if listing:
        for name in dict.fromkeys(task.net for task in chosen):
            result(name)
        return
    rows: list[dict[str, Any]] = []
    try:
        for number, task in enumerate(chosen, 1):
            rows.append(repeated(rows, task) or run(task))
            note(f"{number}/{len(chosen)} {task.net} {task.strategy}: {_short(rows[-1])}")
            if str(json_file) != "-":
                _write(json_file, rows)
    finally:
        if str(json_file) == "-":
            _write(json_file, rows)
    if plot is not None:
        _draw(plot, rows)
    if str(json_file) == "-":
        return
    for line in compile_lines(rows) if suite == "compile" else mapping_lines(rows):
        result(line)


def _on_cpu(
    nets: str, json_file: Path | None, plot: Path | None, listing: bool, engines: list[str], rounds: int | None, threads: int | None
) -> None:
    from snnc.benchmarks.cpu.command import run_suite
    from snnc.benchmarks.cpu.plot import draw
    from snnc.benchmarks.cpu.table import lines
    from snnc.benchmarks.cpu.workloads import WORKLOADS, workloads
    from snnc.cli.console import columns

    chosen = workloads(nets, WORKLOADS, "cpu")
    _check_plot("cpu", plot)
    if listing:
        _list(workload.label for workload in chosen)
        return
    found: dict[str, Any] = {}
    try:
        run_suite(chosen, engines, rounds, threads, note, found)
    finally:
        if found:
            _write_data(json_file, found)
    if plot is not None:
        _write_text(plot, draw(found["rows"], "training steps on a CPU", "measured"))
    if str(json_file) != "-":
        _list(lines(found["rows"], found["left_out"], found["machine"], columns()))


def _on_cuda(
    nets: str,
    json_file: Path | None,
    plot: Path | None,
    listing: bool,
    engines: list[str],
    rounds: int | None,
    threads: int | None,
    ways: str | None,
    first_step: float | None,
    resume: bool,
) -> None:
    from snnc.benchmarks.cpu.plot import draw
    from snnc.benchmarks.cpu.workloads import workloads
    from snnc.benchmarks.cuda.command import FIRST_STEP_S, CudaBenchOptions, run_suite
    from snnc.benchmarks.cuda.table import lines
    from snnc.benchmarks.cuda.ways import FASTEST
    from snnc.benchmarks.cuda.workloads import CUDA_WORKLOADS
    from snnc.cli.console import columns
    from snnc.errors import BenchError

    chosen = workloads(nets, CUDA_WORKLOADS, "cuda")
    _check_plot("cuda", plot)
    if listing:
        _list(workload.label for workload in chosen)
        return
    to_file = json_file is not None and str(json_file) != "-"
    if resume and not to_file:
        raise BenchError("--resume continues the file of --json; name one.")
    found: dict[str, Any] = {}
    options = CudaBenchOptions(rounds, threads, ways or FASTEST, first_step or FIRST_STEP_S, json_file if resume else None)
    try:
        run_suite(chosen, engines, options, note, found, lambda: _write_data(json_file, found) if to_file else None)
    finally:
        if found:
            _write_data(json_file, found)
    if plot is not None:
        _write_text(plot, draw(found["rows"], "training steps on a GPU", found["machine"]["times"]))
    if str(json_file) != "-":
        _list(lines(found["rows"], found["left_out"], found["machine"], columns()))


def _list(lines: Iterable[str]) -> None:
    for line in lines:
        result(line)


def _paper(nets: str, json_file: Path | None, plot: Path | None, listing: bool) -> None:
    from snnc.benchmarks.cuda import paper

    chosen = paper.nets(nets)
    _check_plot("paper", plot)
    if listing:
        for name in chosen:
            result(name)
        return
    rows: list[dict[str, Any]] = []
    try:
        for row in paper.rows(chosen, note):
            rows.append(row)
    finally:
        _write(json_file, rows)
    if str(json_file) != "-":
        for line in paper.lines(rows):
            result(line)


def _short(row: dict[str, Any]) -> str:
    if row.get("step_cycles") is None:
        return str(row.get("error", "no prediction"))
    return f"{row['step_cycles']:,.0f} cycles predicted, compiled in {row['compile_s']:.2f} s"


def _write(json_file: Path | None, rows: list[dict[str, Any]]) -> None:
    _write_data(json_file, {"rows": rows})


def _write_data(json_file: Path | None, found: dict[str, Any]) -> None:
    import json

    from snnc.cli.console import result_json
    from snnc.data.whole_files import whole_file

    if str(json_file) == "-":
        result_json(found)
    elif json_file is not None:
        with whole_file(json_file) as stream:
            stream.write((json.dumps(found, indent=1, allow_nan=False) + "\n").encode())


def _check_only_cpu(engines: str, rounds: int | None, threads: int | None) -> None:
    from snnc.errors import BenchError

    if engines or rounds is not None or threads is not None:
        raise BenchError("--engines, --rounds and --threads are for --suite cpu and cuda; the other suites compile and predict once.")


def _check_only_cuda(ways: str | None, first_step: float | None, resume: bool) -> None:
    from snnc.errors import BenchError

    if ways is not None or first_step is not None or resume:
        raise BenchError("--ways, --first-step and --resume are for --suite cuda.")


def _check_plot(suite: str, plot: Path | None) -> None:
    from snnc.errors import BenchError

    if plot is not None and (suite in ("mapping", "paper") or plot.suffix.lower() != ".svg"):
        raise BenchError(f"--plot {plot} draws rows of --suite compile, cpu or cuda, as .svg; snnc explore draws predictions.")


def _draw(plot: Path, rows: list[dict[str, Any]]) -> None:
    from snnc.benchmarks.growth import draw_growth

    _write_text(plot, draw_growth(rows))


def _write_text(path: Path, text: str) -> None:
    from snnc.data.whole_files import whole_file

    with whole_file(path) as stream:
        stream.write(text.encode())
