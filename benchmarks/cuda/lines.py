"""Prepare lines of the comparison (an engine in one mode each) for timing.

The variants of each line are started and timed briefly, and their losses, gradients and weights are compared with the reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

from snnc.backends.native.processors import processors
from snnc.benchmarks.cpu.engine import Entry
from snnc.benchmarks.cpu.process import EngineProcess, Process
from snnc.benchmarks.cpu.suite import Files, compare, open_timed_problem
from snnc.benchmarks.cuda.ways import ALL, ONLY, TRIAL, FastestWay
from snnc.benchmarks.subprocesses import ProcessError

TRIAL_TURNS: Final = 2
"""Number of turns (a few training steps in a row) of each variant in the trial that finds the fastest."""
TRIAL_S: Final = 20.0
"""Time limit of a turn in the trial, in seconds; slower variants are omitted."""
_NO_ROOM: Final = ("out of memory", "outofmemory", "resource_exhausted", "memoryallocation", "alloc_failed")
"""Parts of the messages, in lower case, with which frameworks report that the device has no free memory."""


@dataclass(frozen=True)
class SuiteSettings:
    """Settings of a run of the suite."""

    rounds: int
    """Number of turns of each engine."""
    threads: int
    """Number of cores that each engine may use."""
    device: str
    """``"cuda"``, or ``"cpu"`` if the CPU replaces the GPU."""
    ways: str
    """:data:`~snnc.benchmarks.cuda.ways.FASTEST` or :data:`~snnc.benchmarks.cuda.ways.ALL`."""
    first_step_s: float
    """Time limit of a variant's first step and its compilation, in seconds."""


@dataclass
class BenchLine:
    """An engine in one of its modes, until its row of the results is measured."""

    entry: Entry
    choice: FastestWay | None = None
    """The chosen variant; None before a choice, or if all variants are measured."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Reasons why variants are omitted, by variant."""
    trial_ms: dict[str, float] = field(default_factory=dict)
    """Milliseconds of a step in the trial, by variant."""
    runners: dict[str, EngineProcess] = field(default_factory=dict)
    """Running processes by variant; once the line is prepared, those that are measured."""

    @property
    def waiting(self) -> list[str]:
        """Variants that have not been started."""
        requested = self.entry.variants if self.choice is None else (self.choice.way,)
        return [way for way in requested if way not in self.left_out and way not in self.runners]

    @property
    def reason(self) -> str:
        """The reasons why variants are omitted."""
        several = len(self.entry.variants) > 1
        return "; ".join(dict.fromkeys(f"{way}: {reason}" if several else reason for way, reason in self.left_out.items()))

    def end(self, way: str, reason: str = "") -> None:
        """End a variant's process; with a reason, the variant is omitted."""
        if reason:
            self.left_out[way] = reason
        if way in self.runners:
            self.runners.pop(way).process.close()

    def end_all(self) -> None:
        """End all processes."""
        for way in list(self.runners):
            self.end(way)

    def to_data(self) -> dict[str, Any]:
        """Return the choice as JSON data, for a row."""
        if self.choice is None:
            return {"by": "", "trial_ms": {}, "left_out": dict(self.left_out)}
        return self.choice.to_data()


Task = tuple[BenchLine, str]
"""A line and a variant to start."""


def prepare_lines(lines: Sequence[BenchLine], files: Files, settings: SuiteSettings) -> None:
    """Start, try and check the variants of each line; the fastest one (or all, if requested) whose numbers agree keeps running."""
    while todo := [one for one in lines if not one.runners and one.waiting]:
        again = _start([(one, way) for one in todo for way in one.waiting], files, settings)
        _choose(todo, settings.ways)
        for task in again:
            _record(task, _first_step(_begin(task, settings), files, settings))
        _choose(todo, settings.ways)
        _compare(todo, files, settings)
        for one in todo:
            if not one.runners:
                one.choice = None  # the variant chosen in an earlier run fails, or its numbers differ: try the others


def _start(tasks: Sequence[Task], files: Files, settings: SuiteSettings) -> list[Task]:
    """Start variants in parallel, or one after another if their compilers time kernels; return the variants that lacked memory."""
    again: list[Task] = []

    def record(task: Task, result: EngineProcess | ProcessError) -> None:
        if isinstance(result, ProcessError) and any(words in str(result).lower() for words in _NO_ROOM):
            again.append(task)
        else:
            _record(task, result)

    with ThreadPoolExecutor(processors()) as pool:
        begun = list(zip(tasks, pool.map(lambda task: _begin(task, settings), tasks), strict=True))
        together = [(task, process) for task, process in begun if not task[0].entry.alone]
        for (task, _), result in zip(together, pool.map(lambda pair: _first_step(pair[1], files, settings), together), strict=True):
            record(task, result)
    for task, process in begun:
        if task[0].entry.alone:
            record(task, _first_step(process, files, settings))
    return again


def _begin(task: Task, settings: SuiteSettings) -> Process | ProcessError:
    try:
        return Process(task[0].entry, task[1], settings.threads, settings.device)
    except ProcessError as error:
        return error


def _first_step(process: Process | ProcessError, files: Files, settings: SuiteSettings) -> EngineProcess | ProcessError:
    if isinstance(process, ProcessError):
        return process
    try:
        return open_timed_problem(process, files, settings.first_step_s)
    except ProcessError as error:
        process.close()
        return error


def _record(task: Task, result: EngineProcess | ProcessError) -> None:
    line, way = task
    if isinstance(result, EngineProcess):
        line.runners[way] = result
    else:
        line.left_out[way] = str(result)


def _choose(lines: Sequence[BenchLine], ways: str) -> None:
    """Time the variants of each line without a choice and end all but the fastest, unless all are requested."""
    for one in lines:
        if len(one.entry.variants) > 1 and one.choice is None and ways != ALL:
            _try(one)
            for way in sorted(one.runners, key=lambda way: one.trial_ms[way])[1:]:
                one.end(way)


def _try(one: BenchLine) -> None:
    for way, runner in list(one.runners.items()):
        try:
            if way not in one.trial_ms:
                for _ in range(TRIAL_TURNS):
                    runner.turn(TRIAL_S)
                one.trial_ms[way] = min(runner.medians)
        except ProcessError as error:
            one.end(way, str(error))


def _compare(lines: Sequence[BenchLine], files: Files, settings: SuiteSettings) -> None:
    """End variants whose numbers differ from the reference; the remaining one becomes the choice of its line."""
    tasks = [(one, way) for one in lines for way in one.runners]

    def difference(task: Task) -> str:
        runner = task[0].runners[task[1]]
        try:
            runner.gradient_error = compare(runner.process, files, settings.first_step_s)
        except ProcessError as error:
            return str(error)
        return ""

    with ThreadPoolExecutor(processors()) as pool:
        for (one, way), reason in zip(tasks, pool.map(difference, tasks), strict=True):
            if reason:
                one.end(way, reason)
    for one in lines:
        if one.runners and one.choice is None and settings.ways != ALL:
            (way,) = one.runners
            one.choice = FastestWay(way, TRIAL if len(one.entry.variants) > 1 else ONLY, dict(one.trial_ms), dict(one.left_out))
