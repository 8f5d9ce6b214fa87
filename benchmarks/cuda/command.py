"""Run the benchmark suite of ``snnc bench --suite cuda``."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from snnc.backends.cuda.build import nvcc
from snnc.backends.cuda.errors import CHECK_ON_HOST
from snnc.backends.native.processors import processors
from snnc.benchmarks.cpu.command import ROUNDS, facts
from snnc.benchmarks.cpu.engine import Entry
from snnc.benchmarks.cpu.rows import summary
from snnc.benchmarks.cpu.suite import Report, named
from snnc.benchmarks.cpu.workloads import Workload
from snnc.benchmarks.cuda.bound import bound
from snnc.benchmarks.cuda.entries import CUDA_ENTRIES, FLOAT32, requested
from snnc.benchmarks.cuda.gpu import H200, Gpu, gpu_here
from snnc.benchmarks.cuda.lines import BenchLine, SuiteSettings
from snnc.benchmarks.cuda.preparation import PreparedFiles, prepare_workloads, versions_of
from snnc.benchmarks.cuda.resuming import SAME, key_of, read_rows, was_measured, without
from snnc.benchmarks.cuda.suite import measure
from snnc.benchmarks.cuda.ways import ALL, FASTEST, TRIAL, WAYS, identity, load_choice, store_choice
from snnc.benchmarks.cuda.workloads import stand_in
from snnc.compiler.files.temporary import temporary_folder
from snnc.errors import BenchError

MEASURED: Final = "measured"
STAND_IN: Final = "no measurement: the CPU replaces the GPU to check the kernels; these times are meaningless"

FIRST_STEP_S: Final = 60.0
"""Default time limit of a variant's first training step and its compilation, in seconds."""


def available_device() -> tuple[str, Gpu]:
    """Return the kind of device, ``"cuda"`` or ``"cpu"`` (in a check), and the device for which bounds are computed.

    Unless a check was requested, raise GpuMissingError without a device, and NvccMissingError without a compiler for it.
    """
    if os.environ.get(CHECK_ON_HOST):
        return "cpu", H200
    gpu = gpu_here()
    nvcc()
    return "cuda", gpu


@dataclass(frozen=True)
class CudaBenchOptions:
    """Settings of the command line other than workloads and engines."""

    rounds: int | None = None
    """Number of turns of each engine; None: :data:`~snnc.benchmarks.cpu.command.ROUNDS`."""
    threads: int | None = None
    """Number of cores that each engine may use; None: all."""
    ways: str = FASTEST
    """:data:`~snnc.benchmarks.cuda.ways.FASTEST`: the variant that a trial finds to be the fastest, for each engine;
    :data:`~snnc.benchmarks.cuda.ways.ALL`: every variant."""
    first_step_s: float = FIRST_STEP_S
    """Time limit of a variant's first training step and its compilation, in seconds."""
    resumed: Path | None = None
    """File of an earlier run, whose rows are kept and not measured again; it need not exist."""
    precisions: tuple[str, ...] = (FLOAT32,)
    """Some of :data:`~snnc.benchmarks.cuda.entries.PRECISIONS`; engines are compared in each of them separately."""


def run_suite(
    chosen: Sequence[Workload],
    engines: Sequence[str],
    options: CudaBenchOptions,
    report: Callable[[str], None],
    results: dict[str, Any],
    save: Callable[[], None] = lambda: None,
) -> None:
    """Measure workloads on the first device with the named engines (none: all).

    If ``SNNC_CUDA_ON_HOST`` is set, the CPU replaces the GPU: every engine runs a small problem there, and the rows say so. `report` is
    called with each line of progress; `results` receives ``rows``, ``left_out``, ``summary`` and ``machine``. `save` is called after each
    change of `results`, so that an interruption loses only the rest.

    Raise GpuMissingError or NvccMissingError if there is no device or no compiler for it, and BenchError if an engine does not exist, a
    number is out of range, or earlier rows cannot be continued.
    """
    chosen_entries = requested(engines, options.precisions, CUDA_ENTRIES)
    rounds, threads = options.rounds or ROUNDS, options.threads or processors()
    if not 1 <= threads <= processors():
        raise BenchError(f"--threads is {threads}; give 1 to {processors()} threads here.")
    if options.ways not in WAYS:
        raise BenchError(f"--ways {options.ways} is neither {' nor '.join(WAYS)}.")
    device, gpu = available_device()
    times = MEASURED if device == "cuda" else STAND_IN
    machine = {
        "GPU": gpu.name if device == "cuda" else "none",
        "precision": ", ".join(dict.fromkeys(entry.precision for entry in chosen_entries)),
        "times": times,
    } | facts(threads)
    rows, left_out = read_rows(options.resumed, machine) if options.resumed else ([], [])
    results |= {"rows": rows, "left_out": left_out, "machine": machine}
    suite = _Suite(SuiteSettings(rounds, threads, device, options.ways, options.first_step_s), gpu, times, report, results, save)
    suite.run([w if device == "cuda" else stand_in(w) for w in chosen], chosen_entries)


@dataclass
class _Suite:
    settings: SuiteSettings
    gpu: Gpu
    times: str
    report: Report
    results: dict[str, Any]
    save: Callable[[], None]

    def run(self, workloads: Sequence[Workload], requested: Sequence[Entry]) -> None:
        versions = versions_of(requested, self.settings.device)
        plan: list[tuple[Workload, list[BenchLine]]] = []
        for workload in workloads:
            lines = [line for entry in requested if (line := self._line(workload, entry, versions[entry.module])) is not None]
            if lines:
                plan.append((workload, lines))
        self._save_results()
        with temporary_folder("snnc-bench-") as name:
            begin = time.monotonic()
            ready = prepare_workloads(plan, Path(name), self.settings, self.report)
            self.report(f"{len(plan)} workloads prepared in {time.monotonic() - begin:.0f} s")
            for workload, lines in plan:
                self._measure(workload, lines, ready, versions)

    def _line(self, workload: Workload, entry: Entry, versions: Mapping[str, str] | str) -> BenchLine | None:
        if isinstance(versions, str):
            self._leave_out(workload, [named(workload, entry) | {"reason": versions}])
            return None
        if was_measured(self.results["rows"], workload, entry, versions, self.settings.ways):
            self.report(f"{workload.label} {entry.engine} {entry.mode}: measured before")
            return None
        several = len(entry.variants) > 1 and self.settings.ways != ALL
        return BenchLine(entry, load_choice(self._identity(workload, entry, versions)) if several else None)

    def _measure(self, workload: Workload, lines: Sequence[BenchLine], ready: PreparedFiles, versions: Mapping[str, Any]) -> None:
        if workload.label in ready.lost:
            self._leave_out(workload, [named(workload, one.entry) | {"reason": ready.lost[workload.label]} for one in lines])
            return

        def store(one: BenchLine) -> None:
            if one.choice is not None and one.choice.reason == TRIAL:
                store_choice(self._identity(workload, one.entry, versions[one.entry.module]), one.choice)

        rows, left_out = measure(workload, ready.files[workload.label], lines, self.settings, self.report, store)
        for one in lines:
            for kind in ("rows", "left_out"):
                self.results[kind] = without(self.results[kind], workload, one.entry)
        self.results["rows"] += [row | {"times": self.times} | _bound(workload, self.gpu, row) for row in rows]
        self.results["left_out"] += left_out
        self._save_results()

    def _leave_out(self, workload: Workload, left_out: Sequence[dict[str, Any]]) -> None:
        others = [one for one in self.results["left_out"] if all(key_of(one) != key_of(other) for other in left_out)]
        self.results["left_out"] = [*others, *left_out]
        for one in left_out:
            self.report(f"{workload.label} {one['engine']} {one['mode']}: left out, {one['reason']}")
        self._save_results()

    def _save_results(self) -> None:
        self.results["summary"] = summary(self.results["rows"]) if self.times == MEASURED else []
        self.save()

    def _identity(self, workload: Workload, entry: Entry, versions: Mapping[str, str]) -> dict[str, Any]:
        machine = [self.results["machine"][key] for key in SAME]
        return identity(entry, workload, versions, machine, self.settings.first_step_s)


def _bound(workload: Workload, gpu: Gpu, row: dict[str, Any]) -> dict[str, Any]:
    if row["precision"] != FLOAT32:
        return {"bound_ms": None, "bound": None}
    one = bound(workload, gpu, row["activity"])
    return {"bound_ms": 1e3 * one.seconds, "bound": one.to_data() | {"of": gpu.name, "kind": "computed"}}
