"""Measure one workload of the suite cuda: the lines of its comparison are prepared for timing, then their processes take turns.

A *line* is an engine in one mode. It has one or several *variants*, such as eager and compiled. Each variant that is measured has a
*runner*: its process with its measurements.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Any, Final

from snnc.benchmarks.cpu.process import MAX_STEPS, EngineProcess
from snnc.benchmarks.cpu.rows import row
from snnc.benchmarks.cpu.suite import Files, Report, named, take_turns
from snnc.benchmarks.cpu.workloads import Workload
from snnc.benchmarks.cuda.gpu import consumed_joules, used_bytes
from snnc.benchmarks.cuda.lines import BenchLine, SuiteSettings, prepare_lines
from snnc.benchmarks.subprocesses import ProcessError

TURN_S: Final = 60.0
"""Time limit of an engine's turn, in seconds."""
ENERGY_S: Final = 1.0
"""Minimum duration of training over which energy is counted, in seconds: the device's counter advances a few times per second."""


def measure(
    workload: Workload,
    files: Files,
    lines: Sequence[BenchLine],
    settings: SuiteSettings,
    report: Report,
    on_choice: Callable[[BenchLine], None] = lambda line: None,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Measure one workload, and return the rows, and the lines that were left out, each with its ``reason``.

    Nothing else may run at the same time. `on_choice` is called with each line after its variant has been chosen.
    """
    with ExitStack() as stack:
        for one in lines:
            stack.callback(one.end_all)
        prepare_lines(lines, files, settings)
        line_of_runner = [(one, runner) for one in lines for runner in one.runners.values()]
        for one in lines:
            on_choice(one)
            report(f"{workload.label} {one.entry.engine} {one.entry.mode}: {_outcome(one)}")
        for _, runner in line_of_runner:
            runner.process.ask("reset_peak")
            used = used_bytes(runner.process.number) if settings.device == "cuda" else None
            runner.device_mb = None if used is None else used / 1e6
            runner.ms, runner.medians = [], []
        alive, lost = take_turns([runner for _, runner in line_of_runner], settings.rounds, TURN_S)
        if settings.device == "cuda":
            for runner in alive:
                runner.joules = joules_per_step(runner)
        left_out = [named(workload, one.entry) | {"reason": one.reason} for one in lines if not one.runners]
        left_out += [named(workload, runner.process.entry) | {"reason": reason} for runner, reason in lost]
        cosine, group = files.check.cosine(), datetime.now(UTC).isoformat(timespec="milliseconds")
        rows = []
        for one, runner in line_of_runner:
            if runner in alive:
                measured_row = row(workload, runner, files.first, 1.0 if one.entry.exact else cosine)
                rows.append(measured_row | {"group": group, "ways": settings.ways, "chosen": one.to_data()})
    return rows, left_out


def joules_per_step(runner: EngineProcess) -> float | None:
    """Return the energy of the device per training step, resets of the weights and idle time between turns included; None if unknown."""
    begin, started, steps = consumed_joules(), time.monotonic(), 0
    if begin is None:
        return None
    turn = min(MAX_STEPS, max(1, math.ceil(1e3 * ENERGY_S / max(runner.step_ms, 1e-3))))
    try:
        while time.monotonic() < started + ENERGY_S:
            steps += len(runner.process.ask("turn", TURN_S, untimed=0, steps=turn)["ms"])
    except ProcessError:
        return None
    end = consumed_joules()
    return None if end is None else (end - begin) / steps


def _outcome(one: BenchLine) -> str:
    if not one.runners:
        return f"left out, {one.reason}"
    tried = ", ".join(f"{way} {ms:.4g} ms" for way, ms in one.trial_ms.items())
    parts = [", ".join(one.runners), f"tried: {tried}" if tried else "", f"left out: {one.reason}" if one.left_out else ""]
    return "; ".join(part for part in parts if part)
