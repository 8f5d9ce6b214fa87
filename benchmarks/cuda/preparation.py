"""Slow preparations that run in parallel before any timing: expected results, builds of programs, caches of compilers.

All of them have ended when :func:`prepare_workloads` returns, so nothing else runs while an engine is timed.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from snnc.backends.native.processors import processors
from snnc.benchmarks.cpu.engine import Entry
from snnc.benchmarks.cpu.process import Process
from snnc.benchmarks.cpu.suite import TIMED_PROBLEM, Files, Report
from snnc.benchmarks.cpu.workloads import Workload
from snnc.benchmarks.cuda.lines import BenchLine, SuiteSettings
from snnc.benchmarks.cuda.preparation_process import EXPECTED, PROBLEM, PROJECT, prepare, read_files
from snnc.benchmarks.subprocesses import ProcessError

_THREADS: Final = 2
_FEW_THREADS: Final = dict.fromkeys(
    ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TORCHINDUCTOR_COMPILE_THREADS"), str(_THREADS)
)
"""Environment of the processes: it limits the threads of each, because as many processes as cores run at a time."""


@dataclass(frozen=True)
class PreparedFiles:
    """The files of each workload by its label (`files`), or the reason why they are missing (`lost`)."""

    files: dict[str, Files] = field(default_factory=dict)
    lost: dict[str, str] = field(default_factory=dict)


def versions_of(entries: Sequence[Entry], device: str) -> dict[str, dict[str, str] | str]:
    """Return, by module of an engine, the versions of its packages or why it cannot be used; each is queried in a separate process."""

    def ask(entry: Entry) -> dict[str, str] | str:
        try:
            with closing(Process(entry, entry.variants[0], processors(), device)) as process:
                return process.versions
        except ProcessError as error:
            return str(error)

    modules = {entry.module: entry for entry in entries}
    with ThreadPoolExecutor(processors()) as pool:
        return dict(zip(modules, pool.map(ask, modules.values()), strict=True))


def prepare_workloads(
    plan: Sequence[tuple[Workload, Sequence[BenchLine]]], folder: Path, settings: SuiteSettings, report: Report
) -> PreparedFiles:
    """Prepare workloads in parallel processes, with a new folder for each in `folder`; variants that fail are removed from their lines.

    Programs that could not be built are reported.
    """
    ready = PreparedFiles()
    environment = {**os.environ, **_FEW_THREADS}
    for workload, _ in plan:
        (folder / workload.label).mkdir()
    with ThreadPoolExecutor(processors()) as pool:

        def begin(what: str, workload: Workload, mode: str = "") -> Future[dict[str, Any]]:
            return pool.submit(prepare, what, folder / workload.label, workload, environment, mode)

        problems = [begin(PROBLEM, workload) for workload, _ in plan]
        programs = [(workload, mode, begin(PROJECT, workload, mode)) for workload, lines in plan for mode in _programs(lines)]
        numbers = [begin(EXPECTED, workload) for workload, _ in plan]
        compiled: list[tuple[BenchLine, str, Future[None]]] = []
        for (workload, lines), problem in zip(plan, problems, strict=True):
            if not _failure(problem):
                data = str(folder / workload.label / TIMED_PROBLEM)
                compiled += [
                    (one, way, pool.submit(_first_step, one, way, data, settings))
                    for one in lines
                    for way in one.entry.compiled
                    if way in one.waiting
                ]
    for (workload, _), problem, number in zip(plan, problems, numbers, strict=True):
        reason = _failure(problem) or _failure(number)
        if reason:
            ready.lost[workload.label] = f"its problem was not prepared: {reason}"
        else:
            ready.files[workload.label] = read_files(folder / workload.label, number.result())
    for one, way, first_step in compiled:
        if reason := _failure(first_step):
            one.end(way, reason)
    for workload, mode, program in programs:
        if reason := _failure(program):
            report(f"{workload.label} snnc {mode}: {reason}")
    return ready


def _programs(lines: Sequence[BenchLine]) -> list[str]:
    """Return the modes of snnc that need a separate program."""
    modes = [one.entry.mode for one in lines if one.entry.engine == "snnc"]
    return list(dict.fromkeys("exact" if mode in ("events", "checkpoint") else mode for mode in modes))


def _first_step(one: BenchLine, way: str, data: str, settings: SuiteSettings) -> None:
    """Run the first step of a variant in a temporary process to fill the cache of its compiler."""
    with closing(Process(one.entry, way, processors(), settings.device, _FEW_THREADS)) as process:
        process.ask("open", settings.first_step_s, data=data)
        process.ask("step", settings.first_step_s)


def _failure(future: Future[Any]) -> str:
    error = future.exception()
    if error is None:
        return ""
    if isinstance(error, ProcessError):
        return str(error)
    raise error
