"""The suite as ``snnc bench --suite cuda`` runs it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Final

from snnc.backends.cuda.build import nvcc
from snnc.backends.cuda.errors import CHECK_ON_HOST
from snnc.backends.processors import processors
from snnc.benchmarks.cpu.command import ROUNDS
from snnc.benchmarks.cpu.engine import entries
from snnc.benchmarks.cpu.machine import facts
from snnc.benchmarks.cpu.suite import measure
from snnc.benchmarks.cpu.summary import summary
from snnc.benchmarks.cpu.workloads import Workload
from snnc.benchmarks.cuda.bound import bound
from snnc.benchmarks.cuda.entries import CUDA_ENTRIES
from snnc.benchmarks.cuda.gpu import H200, Gpu, gpu_here
from snnc.benchmarks.cuda.workloads import stand_in
from snnc.errors import BenchError

MEASURED: Final = "measured"
STAND_IN: Final = "no measurement: the processor stands in for a GPU and checks the kernels; these times mean nothing"


def device_at_hand() -> tuple[str, Gpu]:
    """Return what runs, ``"cuda"`` or ``"cpu"`` (in a check), and the device whose bounds are told.

    Raises
    ------
    GpuMissingError, NvccMissingError
        There is no device, or no compiler for it, and no check was asked for.
    """
    if os.environ.get(CHECK_ON_HOST):
        return "cpu", H200
    found = gpu_here()
    nvcc()
    return "cuda", found


def run_suite(
    chosen: Sequence[Workload],
    engines: Sequence[str],
    rounds: int | None,
    threads: int | None,
    tell: Callable[[str], None],
    found: dict[str, Any],
) -> None:
    """Measure workloads on the first device into `found`; see :func:`snnc.benchmarks.cpu.command.run_suite`.

    Where ``SNNC_CUDA_ON_HOST`` is set the processor stands in: every engine runs there in little, and rows say so.

    Raises
    ------
    GpuMissingError, NvccMissingError
        There is nothing to measure on, or no compiler for it.
    BenchError
        There is no such engine, or a number is out of range.
    """
    wanted = entries(engines, CUDA_ENTRIES, "cuda")
    number, used = rounds or ROUNDS, threads or processors()
    if not 1 <= used <= processors():
        raise BenchError(f"{used} threads cannot be measured: 1 to {processors()} here.")
    device, gpu = device_at_hand()
    times = MEASURED if device == "cuda" else STAND_IN
    name = gpu.name if device == "cuda" else "none"
    found |= {
        "rows": [],
        "left_out": [],
        "machine": {"GPU": name, "precision": "float32 (modes bfloat16 and float16: see their notes)", "times": times} | facts(used),
    }
    for whole in chosen:
        workload = whole if device == "cuda" else stand_in(whole)
        rows, left_out = measure(workload, wanted, number, used, tell, device)
        found["rows"] += [row | {"times": times} | _bound(workload, gpu, row) for row in rows]
        found["left_out"] += left_out
        found["summary"] = summary(found["rows"]) if device == "cuda" else []


def _bound(workload: Workload, gpu: Gpu, row: dict[str, Any]) -> dict[str, Any]:
    one = bound(workload, gpu, row["activity"])
    return {"bound_ms": 1e3 * one.seconds, "bound": one.to_data() | {"of": gpu.name, "kind": "computed"}}
