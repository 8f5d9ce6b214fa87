"""Run the benchmark suite of ``snnc bench --suite cpu``."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from snnc.backends.native.processors import processors
from snnc.benchmarks.cpu.engine import Entry, entries
from snnc.benchmarks.cpu.rows import summary
from snnc.benchmarks.cpu.suite import measure
from snnc.benchmarks.cpu.workloads import Workload
from snnc.errors import BenchError

ROUNDS: Final = 7
"""Default number of turns of each engine."""


def run_suite(
    chosen: Sequence[Workload],
    engines: Sequence[str],
    rounds: int | None,
    threads: int | None,
    report: Callable[[str], None],
    results: dict[str, Any],
    save: Callable[[], None] = lambda: None,
) -> None:
    """Measure workloads one after another with the named engines (none: all).

    Each engine has `rounds` turns (None: :data:`ROUNDS`) and `threads` cores (None: all). `report` is called with each line of progress;
    `results` receives ``rows``, ``left_out``, ``summary`` and ``machine``. `save` is called after each workload, so that an interruption
    loses only the rest. Raise BenchError if an engine does not exist, or a number is out of range.
    """
    requested: tuple[Entry, ...] = entries(engines)
    number, used = rounds or ROUNDS, threads or processors()
    if number < 1 or not 1 <= used <= processors():
        raise BenchError(f"--rounds is {number} and --threads {used}; give 1 round or more, and 1 to {processors()} threads here.")
    results |= {"rows": [], "left_out": [], "machine": facts(used)}
    for workload in chosen:
        rows, left_out = measure(workload, requested, number, used, report)
        results["rows"] += rows
        results["left_out"] += left_out
        results["summary"] = summary(results["rows"])
        save()


def facts(threads: int) -> dict[str, str]:
    """Return the CPU, the numbers of its cores and of threads per engine, the load, the system, Python's version and the date, as text."""
    return {
        "CPU": _model(),
        "cores": str(processors()),
        "threads": str(threads),
        "load": f"{os.getloadavg()[0]:.1f} of {processors()} at the start" if hasattr(os, "getloadavg") else "unknown",
        "system": f"{platform.system()} {platform.machine()}",
        "Python": platform.python_version(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }


def _model() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(errors="replace")
    except OSError:
        return platform.processor() or platform.machine()
    fields = (line.partition(":") for line in text.splitlines())
    return next((value.strip() for name, _, value in fields if name.strip() == "model name"), platform.processor() or "unknown")
