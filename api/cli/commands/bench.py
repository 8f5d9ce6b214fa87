"""``snnc bench``: measurements of mappings, compile times and training steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from snnc.cli.common import refuse_without_effect
from snnc.cli.console import columns, note, result, write_json
from snnc.cli.parameters import command, option


@dataclass(frozen=True)
class BenchArguments:
    """Arguments of ``snnc bench``."""

    suite: str = option(
        "mapping: compare mapping strategies; compile: time and memory of compilation; cpu, cuda: compare training steps of snnc and "
        "other frameworks; paper: the networks of arXiv 2311.04386, measured on a GPU and predicted for IPUs.",
        default="mapping",
    )
    nets: str = option("Only nets with these names, separated by commas: 'logged-*', 'w1,shd-x*'.", default="*", metavar="PATTERNS")
    json_file: Path | None = option("Write the rows as JSON; - for stdout.", "--json", metavar="FILE")
    plot: Path | None = option("With --suite compile, cpu or cuda: draw the rows in this .svg file.", metavar="FILE")
    listing: bool = option("Print the names of the nets that would run, and exit.", "--list", default=False)
    engines: str = option("With --suite cpu or cuda: only these engines, such as snnc:exact,torch,jax.", default="", metavar="NAMES")
    rounds: int | None = option("With --suite cpu or cuda: number of timings of each engine (default 7).", min=1)
    threads: int | None = option("With --suite cpu or cuda: number of cores for each engine (default all).", min=1)
    ways: str | None = option(
        "With --suite cuda: variants of each engine to measure: the fastest in a short trial (fastest, the default), or all.",
        metavar="WAYS",
    )
    first_step: float | None = option(
        "With --suite cuda: skip variants whose first step, including compilation, takes longer (default 60).", min=1, metavar="SECONDS"
    )
    precision: str | None = option(
        "With --suite cuda: compare the engines in these precisions: float32 (the default), tf32, bfloat16, float16, or all.",
        metavar="NAMES",
    )
    resume: bool = option("With --suite cuda: keep the rows of the --json file, and measure the missing ones.", default=False)

    @property
    def to_stdout(self) -> bool:
        """Whether stdout carries only JSON."""
        return str(self.json_file) == "-"

    @property
    def engine_names(self) -> list[str]:
        """The names of ``--engines``."""
        return [name.strip() for name in self.engines.split(",") if name.strip()]


@command(BenchArguments)
def bench(context: typer.Context, args: BenchArguments) -> None:
    """Compare mappings of snnc and of baselines (predicted), or measure compile times, or training steps of snnc and other frameworks.

    Every row is measured in a separate process, so that no other row affects its time and peak memory. A failure is a row with an error.
    The --json file is rewritten after each row, so an interrupted run keeps its finished rows.
    In the suites cpu and cuda all engines train the same network in turn; their results must agree before anything is timed. Slow
    preparations (building snnc's programs, compilers of frameworks) run in parallel before the timing. cuda needs a GPU and nvcc. With
    SNNC_CUDA_ON_HOST=1 the CPU replaces the GPU: this checks the suite, but its times mean nothing.

    Example: snnc bench --suite mapping --nets 'logged-*' --json rows.json

    The suite paper covers the networks of arXiv 2311.04386. It predicts their training steps on IPUs and measures them on a GPU, if there
    is one, in separate columns.

    Example: snnc bench --suite cpu --nets 'w1*' --json rows.json --plot rows.svg
    """
    _check(args)
    if args.listing:
        unused = ("json_file", "plot", "engines", "rounds", "threads", "ways", "first_step", "precision", "resume")
        refuse_without_effect(context, "--list", unused)
    suites = {"cpu": _on_cpu, "cuda": _on_cuda, "paper": _paper}
    suites.get(args.suite, _compiled)(args)


@contextmanager
def _written(args: BenchArguments, results: dict[str, Any]) -> Iterator[Callable[[], None]]:
    """Yield a function that rewrites the file of ``--json``; JSON on stdout is printed once, when the suite ends or fails."""

    def save() -> None:
        if not args.to_stdout:
            write_json(args.json_file, results)

    try:
        yield save
    finally:
        if results:
            write_json(args.json_file, results)


def _compiled(args: BenchArguments) -> None:
    """Run the suite mapping or compile: both compile networks and run none of them."""
    from snnc.benchmarks.growth import draw_growth
    from snnc.benchmarks.suites import derived_row, run, tasks
    from snnc.benchmarks.table import compile_lines, mapping_lines
    from snnc.data.whole_files import write_text

    chosen = tasks(args.suite, args.nets)
    if args.listing:
        _print(dict.fromkeys(task.net for task in chosen))
        return
    rows: list[dict[str, Any]] = []
    results: dict[str, Any] = {}
    with _written(args, results) as save:
        for number, task in enumerate(chosen, 1):
            rows.append(derived_row(rows, task) or run(task))
            note(f"{number}/{len(chosen)} {task.net} {task.strategy}: {_short(rows[-1])}")
            results["rows"] = rows
            save()
    if args.plot is not None:
        write_text(args.plot, draw_growth(rows))
    if not args.to_stdout:
        _print(compile_lines(rows) if args.suite == "compile" else mapping_lines(rows))


def _on_cpu(args: BenchArguments) -> None:
    from snnc.benchmarks.cpu.command import run_suite
    from snnc.benchmarks.cpu.table import lines
    from snnc.benchmarks.cpu.workloads import WORKLOADS, workloads

    chosen = workloads(args.nets, WORKLOADS, "cpu")
    if args.listing:
        _print(workload.label for workload in chosen)
        return
    results: dict[str, Any] = {}
    with _written(args, results) as save:
        run_suite(chosen, args.engine_names, args.rounds, args.threads, note, results, save)
    _show_steps(args, results, "training steps on a CPU", "measured", lines)


def _on_cuda(args: BenchArguments) -> None:
    from snnc.benchmarks.cpu.workloads import workloads
    from snnc.benchmarks.cuda.command import FIRST_STEP_S, CudaBenchOptions, run_suite
    from snnc.benchmarks.cuda.entries import FLOAT32, precisions
    from snnc.benchmarks.cuda.table import lines
    from snnc.benchmarks.cuda.ways import FASTEST
    from snnc.benchmarks.cuda.workloads import CUDA_WORKLOADS
    from snnc.errors import BenchError

    chosen = workloads(args.nets, CUDA_WORKLOADS, "cuda")
    if args.listing:
        _print(workload.label for workload in chosen)
        return
    if args.resume and (args.to_stdout or args.json_file is None):
        raise BenchError("--resume continues the file of --json; name one.")
    results: dict[str, Any] = {}
    ways, first_step = args.ways or FASTEST, args.first_step or FIRST_STEP_S
    resumed = args.json_file if args.resume else None
    options = CudaBenchOptions(args.rounds, args.threads, ways, first_step, resumed, precisions(args.precision or FLOAT32))
    with _written(args, results) as save:
        run_suite(chosen, args.engine_names, options, note, results, save)
    _show_steps(args, results, "training steps on a GPU", results["machine"]["times"], lines)


def _show_steps(args: BenchArguments, results: dict[str, Any], title: str, times: str, lines: Callable[..., Iterable[str]]) -> None:
    from snnc.benchmarks.cpu.plot import draw
    from snnc.data.whole_files import write_text

    if args.plot is not None:
        write_text(args.plot, draw(results["rows"], title, times))
    if not args.to_stdout:
        _print(lines(results["rows"], results["left_out"], results["machine"], columns()))


def _paper(args: BenchArguments) -> None:
    from snnc.benchmarks.cuda import paper

    chosen = paper.nets(args.nets)
    if args.listing:
        _print(chosen)
        return
    rows: list[dict[str, Any]] = []
    results: dict[str, Any] = {}
    with _written(args, results) as save:
        for row in paper.rows(chosen, note):
            rows.append(row)
            results["rows"] = rows
            save()
    if not args.to_stdout:
        _print(paper.lines(rows))


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        result(line)


def _short(row: dict[str, Any]) -> str:
    if row.get("step_cycles") is None:
        return str(row.get("error", "no prediction"))
    return f"{row['step_cycles']:,.0f} cycles predicted, compiled in {row['compile_s']:.2f} s"


def _check(args: BenchArguments) -> None:
    from snnc.errors import BenchError

    if args.suite not in ("cpu", "cuda") and (args.engines or args.rounds is not None or args.threads is not None):
        raise BenchError("--engines, --rounds and --threads are for --suite cpu and cuda; the other suites compile and predict once.")
    if args.suite != "cuda" and (args.ways is not None or args.first_step is not None or args.precision is not None or args.resume):
        raise BenchError("--ways, --first-step, --precision and --resume are for --suite cuda.")
    if args.plot is not None and (args.suite in ("mapping", "paper") or args.plot.suffix.lower() != ".svg"):
        raise BenchError(f"--plot {args.plot} draws rows of --suite compile, cpu or cuda, as .svg; snnc explore draws predictions.")
