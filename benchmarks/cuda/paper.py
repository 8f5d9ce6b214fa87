"""``snnc bench --suite paper``: training steps of the networks of arXiv 2311.04386, measured on a GPU and predicted for IPUs.

Measured and predicted numbers have separate keys and columns, each with its ``kind``:

- ``ipu``, predicted: snnc's program on the network's IPUs with the GPU's weights, data and activity (:mod:`snnc.benchmarks.matched`); a
  list, because logged runs are predicted for two machines, whose clocks differ (:data:`~snnc.benchmarks.suites.CLOCKS`).
- ``log``, measured by the paper's authors on one IPU: the program that they published (:mod:`snnc.benchmarks.log`); or None.
- ``gpu_predicted``: snnc's CUDA program on one H100, from the predicted times of its kernel launches.
- ``gpu``, measured: snnc's CUDA program on the first device of this machine, or the reason why it was not measured.

Measured and predicted steps have ``conditions``: hashes of weights and data, and the activity. If the conditions of a GPU step differ from
those of the predictions, its time is omitted and the difference is given instead.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from snnc.backends.cuda.errors import CHECK_ON_HOST, GpuMissingError, NvccMissingError
from snnc.benchmarks.conditions import Conditions, conditions_differ
from snnc.benchmarks.cuda.command import available_device
from snnc.benchmarks.cuda.predicted import predict_gpu_step
from snnc.benchmarks.log import logged_runs
from snnc.benchmarks.nets import names
from snnc.benchmarks.patterns import matching
from snnc.benchmarks.subprocesses import ProcessError, run_module
from snnc.benchmarks.suites import CLOCKS, SECONDS

SUITES: Final = ("logged", "multi_layer", "multi_neuron", "multi_ipu")
MEASURED: Final = "measured"
PREDICTED: Final = "predicted"
NOT_MEASURED: Final = "not measured"
NOT_COMPARED: Final = "not compared"
CHECKED: Final = "not measured, numbers checked on the CPU"
"""Kinds of the numbers of a row."""
Row = Mapping[str, Any]
_NOTES: Final = (
    "IPU ms, predicted: snnc's program by its model, with the weights, data and activity of the GPU's column (listed by --json); it drops "
    "no spikes",
    "IPU ms, log: the published program on one IPU, measured by its authors",
    "GPU ms, predicted: snnc's CUDA program on one NVIDIA H100, float32, from the rates of its kernels",
    "GPU ms, measured: snnc's CUDA program{device}, float32, the batch on the device",
)


def nets(patterns: str = "*") -> tuple[str, ...]:
    """Return the networks whose name matches one of `patterns`; for ``"*"``, the logged ones and those with capacities of 5 %."""
    all_names = [name for suite in SUITES for name in names(suite)]
    usual = [name for name in all_names if name.startswith("logged-") or ("-a5" in name and "-a50" not in name)]
    known = tuple(dict.fromkeys(all_names if patterns != "*" else usual))
    examples = ", ".join(names(s)[0] for s in SUITES)
    return matching(patterns, known, lambda name: (name,), "network of the paper's grid", f"names look like {examples}")


def rows(chosen: Sequence[str], report: Callable[[str], None]) -> Iterator[dict[str, Any]]:
    """Yield a row for each network; predictions for IPUs and measurements run in separate processes."""
    logged = {one.name: one.logged_ms for one in logged_runs()}
    missing = reason_without_gpu()
    for number, name in enumerate(chosen, 1):
        row: dict[str, Any] = {"net": name, "ipu": [predicted(name, target) for target in (CLOCKS if name in logged else (None,))]}
        row["log"] = {"kind": MEASURED, "by": "its authors", "ms": logged[name]} if name in logged else None
        step = predict_gpu_step(name)
        sizes = {key: step[key] for key in ("steps", "batch")}
        row["gpu_predicted"] = {"kind": PREDICTED, "target": step["device"], "ms": step["step_ms"]} | sizes
        row["gpu"] = {"kind": NOT_MEASURED, "reason": missing} if missing else comparable(measured(name), row["ipu"])
        report(f"{number}/{len(chosen)} {name}: {'; '.join(map(_outcome, (*row['ipu'], row['gpu'])))}")
        yield row


def reason_without_gpu() -> str:
    """Return the reason why no GPU can be used; "" if there is one, or if kernels run on the CPU (:data:`CHECK_ON_HOST`)."""
    try:
        available_device()
    except (GpuMissingError, NvccMissingError) as error:
        return f"no GPU: {error.text}" if isinstance(error, GpuMissingError) else error.text
    return ""


def predicted(name: str, target: str | None, seconds: float = SECONDS) -> dict[str, Any]:
    """Return the step time that snnc predicts for IPUs, with the activity of the measured problem, or why there is none."""
    row = in_process("snnc.benchmarks.matched", [name, *([target] if target else [])], seconds)
    shared = {"kind": PREDICTED, "target": row.get("target") or target, "ipus": row.get("ipus")}
    shared |= {"conditions": row["conditions"]} if "conditions" in row else {}
    if not row.get("fits"):
        return shared | {"ms": None, "reason": row.get("error") or row.get("reason", "does not fit")}
    return shared | {"ms": row["step_ms"], "steps": row["steps"], "batch": row["batch"]}


def in_process(module: str, arguments: Sequence[str], seconds: float) -> dict[str, Any]:
    """Run a module in a new process and return the JSON of its last line; only a ``reason`` if it fails or takes more than `seconds`."""
    try:
        return run_module(module, arguments, seconds)
    except ProcessError as error:
        return {"reason": str(error)}


def comparable(gpu: Mapping[str, Any], ipu: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the GPU's column, without its time if its weights, data or activity differ from those of the predictions."""
    for one in ipu:
        if "conditions" in gpu and "conditions" in one:
            wrong = conditions_differ(Conditions(**gpu["conditions"]), Conditions(**one["conditions"]))
            if wrong:
                return {**gpu, "kind": NOT_COMPARED, "ms": None, "reason": f"not compared with {one['target']}: {wrong}"}
    return dict(gpu)


def measured(name: str, seconds: float = SECONDS) -> dict[str, Any]:
    """Return snnc's measured step on the first device; if kernels run on the CPU, only whether its numbers are correct."""
    result = in_process("snnc.benchmarks.cuda.paper_step", [name], seconds)
    if "reason" in result:
        return {"kind": NOT_MEASURED} | result
    return {"kind": CHECKED if os.environ.get(CHECK_ON_HOST) else MEASURED} | result


def lines(results: Sequence[Row]) -> Iterator[str]:
    """Yield the lines of a table of the rows, the reasons for missing numbers, and notes on the columns."""
    numbers = f"{'IPU ms, predicted':>18} {'IPU ms, log':>12} {'GPU ms, predicted':>18} {'GPU ms, measured':>17}"
    yield f"{'net':20} {'T':>4} {'B':>4} {'IPUs':>5} {'target':8} {numbers}"
    for row in results:
        for one in row["ipu"]:
            sizes = f"{one.get('steps', ''):>4} {one.get('batch', ''):>4} {one['ipus'] or '':>5} {one['target'] or '':8}"
            log = f"{row['log']['ms']:.3g}" if row["log"] else ""
            yield f"{row['net']:20} {sizes} {_ms(one):>18} {log:>12} {_ms(row['gpu_predicted']):>18} {_ms(row['gpu']):>17}"
    for row in results:
        for one in (*row["ipu"], row["gpu"]):
            if one.get("reason") and not str(one["reason"]).startswith("no GPU"):
                yield f"{row['net']}, {one['kind']}: {one['reason']}"
    without = next((row["gpu"]["reason"] for row in results if str(row["gpu"].get("reason", "")).startswith("no GPU")), "")
    if without:
        yield f"GPU: not measured: {without}"
    device = next((row["gpu"]["device"] for row in results if row["gpu"].get("device")), "")
    yield from (line.format(device=f", {device}" if device else "") for line in _NOTES)


def _ms(one: Row) -> str:
    if one.get("ms"):
        return f"{one['ms']:.4g}"
    return "does not fit" if one["kind"] == PREDICTED else NOT_COMPARED if one["kind"] == NOT_COMPARED else "not measured"


def _outcome(one: Row) -> str:
    return f"{one.get('target') or 'GPU'} {_ms(one)}" + (f" ms {one['kind']}" if one.get("ms") else "")
