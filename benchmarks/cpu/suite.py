"""Measure one workload: every engine is checked on a small problem, then timed in turns with the others."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from snnc.benchmarks.cpu.engine import Entry
from snnc.benchmarks.cpu.equality import TIMED_LOSS, TIMED_LOSS_ROUNDED, difference, gradient_error
from snnc.benchmarks.cpu.oracle import Check, ReferenceStep, make_check, reference_step
from snnc.benchmarks.cpu.problem import make_problem, write_problem
from snnc.benchmarks.cpu.process import SECONDS, EngineProcess, Process
from snnc.benchmarks.cpu.rows import row
from snnc.benchmarks.cpu.workloads import Workload
from snnc.benchmarks.subprocesses import ProcessError
from snnc.compiler.files.temporary import temporary_folder

TRIALS: Final = 3
"""Number of turns of each variant in the trial that finds an engine's fastest one."""
TIMED_PROBLEM: Final = "whole.npz"
CHECKED_PROBLEM: Final = "check.npz"
"""File names of the timed problem, and of the small one for the check."""
Report = Callable[[str], None]


@dataclass(frozen=True)
class Files:
    """The timed problem of a workload and the small problem for the check, as files, and the numbers that engines must produce."""

    folder: Path
    check: Check
    first: ReferenceStep

    @property
    def timed(self) -> str:
        """Archive of the timed problem."""
        return str(self.folder / TIMED_PROBLEM)

    @property
    def small(self) -> str:
        """Archive of the checked problem."""
        return str(self.folder / CHECKED_PROBLEM)


def measure(
    workload: Workload, entries: Sequence[Entry], rounds: int, threads: int, report: Report
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Measure one workload with `rounds` turns of each engine, which may use `threads` cores.

    Return the rows, and the entries that were left out, each with its ``reason``.
    """
    with temporary_folder("snnc-bench-") as name, ExitStack() as stack:
        problem, check = make_problem(workload), make_check(workload)
        files = Files(Path(name), check, reference_step(problem))
        write_problem(problem, Path(files.timed))
        write_problem(check.problem, Path(files.small))
        del problem
        runners, left_out = [], []
        for entry in entries:
            runner, reasons = _fastest(entry, files, threads, report)
            if runner is None:
                left_out.append(named(workload, entry) | {"reason": "; ".join(dict.fromkeys(reasons))})
                report(f"{workload.label} {entry.engine} {entry.mode}: left out, {left_out[-1]['reason']}")
            else:
                stack.callback(runner.process.close)
                runners.append(runner)
        runners, lost = take_turns(runners, rounds)
        left_out += [named(workload, runner.process.entry) | {"reason": reason} for runner, reason in lost]
        cosine = check.cosine()  # of the angle between the exact and the windowed gradient
        rows = [row(workload, runner, files.first, 1.0 if runner.process.entry.exact else cosine) for runner in runners]
    return rows, left_out


def named(workload: Workload, entry: Entry) -> dict[str, Any]:
    """Return the values that identify a line of the comparison."""
    return {"workload": workload.name, "density": workload.density, "engine": entry.engine, "mode": entry.mode}


def _fastest(entry: Entry, files: Files, threads: int, report: Report) -> tuple[EngineProcess | None, list[str]]:
    """Check and time every variant; return the process of the fastest one (None: all failed), and the reasons why variants failed."""
    best: EngineProcess | None = None
    reasons = []
    for variant in entry.variants:
        try:
            runner = _start(entry, variant, files, threads, trials=TRIALS if len(entry.variants) > 1 else 1)
        except ProcessError as error:
            reasons.append(f"{variant}: {error}" if len(entry.variants) > 1 else str(error))
            continue
        report(f"{entry.engine} {entry.mode}, {variant}: numbers equal, about {min(runner.medians):.3g} ms")
        loser = runner if best is not None and min(best.medians) <= min(runner.medians) else best
        best = best if loser is runner else runner
        if loser is not None:
            loser.process.close()
    if best is not None:
        best.ms, best.medians = [], []
    return best, reasons


def _start(entry: Entry, variant: str, files: Files, threads: int, trials: int) -> EngineProcess:
    """Start a process, check its numbers, build the timed problem and take some turns."""
    process = Process(entry, variant, threads)
    try:
        error = compare(process, files)
        runner = open_timed_problem(process, files)
        runner.gradient_error = error
        for _ in range(trials):
            runner.turn()
        process.ask("reset_peak")
    except BaseException:
        process.close()
        raise
    return runner


def compare(process: Process, files: Files, seconds: float = SECONDS) -> float:
    """Let an engine train the small problem, and compare its numbers with the expected ones; return the largest relative gradient error.

    Raise ProcessError if the numbers differ, the engine failed, or it took longer than `seconds`.
    """
    entry, answer = process.entry, files.folder / f"answer-{process.number}.npz"
    process.ask("check", seconds, data=files.small, out=str(answer))
    expected = files.check.of(entry.exact)
    wrong = difference(answer, expected, files.check.problem.weights, entry.tolerance)
    error = 0.0 if wrong else gradient_error(answer, expected)
    answer.unlink()
    if wrong:
        raise ProcessError(f"its numbers differ: {wrong}")
    return error


def open_timed_problem(process: Process, files: Files, seconds: float = SECONDS) -> EngineProcess:
    """Build the timed problem and run two steps; the build and the first step may take `seconds` together.

    Raise ProcessError if the engine failed or took longer, or if its loss differs.
    """
    begin = time.perf_counter()
    process.ask("open", seconds, data=files.timed)
    first = process.ask("step", max(1.0, seconds - (time.perf_counter() - begin)))
    first_step_s = time.perf_counter() - begin
    entry = process.entry
    limit = TIMED_LOSS if entry.precision == "float32" else TIMED_LOSS_ROUNDED
    if not abs(first["loss"] - files.first.loss) <= limit * abs(files.first.loss):
        raise ProcessError(f"its numbers differ: the loss of the timed problem is {first['loss']:.6g}, not {files.first.loss:.6g}")
    runner = EngineProcess(process, first["loss"], first_step_s)
    runner.step_ms = process.ask("step", seconds)["ms"]
    return runner


def take_turns(
    runners: Sequence[EngineProcess], rounds: int, seconds: float = SECONDS
) -> tuple[list[EngineProcess], list[tuple[EngineProcess, str]]]:
    """Give each engine a turn in every round; each round begins with another engine. Return the remaining and the failed engines.

    A turn may take at most `seconds`.
    """
    lost: list[tuple[EngineProcess, str]] = []
    alive = list(runners)
    for number in range(rounds):
        shift = number % max(1, len(alive))
        for runner in alive[shift:] + alive[:shift]:
            try:
                runner.turn(seconds)
            except ProcessError as error:
                lost.append((runner, str(error)))
                alive = [other for other in alive if other is not runner]
    for runner in list(alive):
        runner.peak_mb = runner.process.ask("memory")["peak_mb"]
    return alive, lost
