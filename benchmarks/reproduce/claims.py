"""The claims in the abstracts of the two papers (arXiv 2311.04386 and 2211.10725), and whether the results support them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any, Final, Literal, TypeAlias

from snnc.benchmarks.log import logged_runs
from snnc.benchmarks.reproduce.figure import Paper, Results, Row
from snnc.benchmarks.reproduce.figures.gpu import matched_row
from snnc.benchmarks.reproduce.figures.plans import DENSE, PUBLISHED, SNNC, dense_throughput, gpu_row, plan_row
from snnc.benchmarks.reproduce.figures.snntorch import training as codes
from snnc.benchmarks.reproduce.figures.snntorch.neuron_models import PRECISION_BATCH, QUOTED, neuron_row
from snnc.benchmarks.reproduce.measured import MeasuredStep, measured_steps
from snnc.benchmarks.reproduce.neuron_models import MODELS
from snnc.benchmarks.reproduce.sparse_runs import DATA, SHARES, sparse_runs

Answer: TypeAlias = Literal["reproduced", "predicted", "not reproduced", "cannot be decided"]


@dataclass(frozen=True)
class Verdict:
    """Whether the results support a claim; `why` has the numbers and their kinds (predicted, measured, published)."""

    answer: Answer
    why: str


@dataclass(frozen=True)
class Claim:
    """A sentence of an abstract."""

    paper: Paper
    says: str
    figure: str
    """Name of the figure that shows the numbers; "" for none."""
    judge: Callable[[Results], Verdict]


NOTHING: Final = Verdict("cannot be decided", "A result that it needs is missing.")
UNMEASURED: Final = Verdict("cannot be decided", "Neither an IPU nor the paper's GPU was measured.")
GPU_NET: Final = "logged-h2-a5"
"""The network of the published log (2 hidden layers, 5 % activity) that was also measured on a GPU."""


def _results_if_all_fit(results: Results, *rows: Row) -> list[Mapping[str, Any]]:
    """Return the results of the rows; an empty list if a result is missing, or a network does not fit."""
    known = [results.get(row.key, {}) for row in rows]
    return known if all(result.get("fits") for result in known) else []


def _against_gpu(results: Results) -> Verdict:
    step = next(m for m in measured_steps() if m.net == GPU_NET)
    if not (known := _results_if_all_fit(results, matched_row(GPU_NET))):
        return NOTHING
    (ipu,) = known
    ratio = step.ms / ipu["step_ms"]
    log = next(run.logged_ms for run in logged_runs() if run.name == GPU_NET)
    return Verdict(
        "cannot be decided",
        f"No A100 was measured. {GPU_NET}: {ipu['step_ms']:.2f} ms on one IPU (predicted), {log:g} ms (published log), {step.ms:g} ms on "
        f"{_device(step)} (measured): that GPU took {ratio:.1f} x the predicted time, with a program that was far from its bound."
        f"{_gpu_comparison(results, GPU_NET, ipu['step_ms'])}",
    )


def _gpu_comparison(results: Results, net: str, ipu_ms: float) -> str:
    gpu = results.get(gpu_row(net).key, {})
    if "step_ms" not in gpu:
        return ""
    ratio = ipu_ms / gpu["step_ms"]
    compared = f"{ratio:.1f} x faster" if ratio > 1 else f"{1 / ratio:.1f} x slower"
    return f" On an H100, snnc's CUDA program takes {gpu['step_ms']:.2g} ms (predicted): {compared} than the IPU."


def _at_high_sparsity(results: Results) -> Verdict:
    if not (known := _results_if_all_fit(results, plan_row("nmnist-h3-a0.5", SNNC), plan_row("nmnist-h3-a5", DENSE))):
        return NOTHING
    sparse, dense = known
    ratio = dense["step_ms"] / sparse["step_ms"]
    above = 1e3 * sparse["batch"] / sparse["step_ms"] / dense_throughput("nmnist-h3-a5")
    return Verdict(
        "cannot be decided",
        f"No A100 was measured. On an IPU, at a capacity of 0.5 %, the sparse program is {ratio:.0f} x faster than snnc's program without "
        "events (both predicted), which multiplies all values, but without the IPU's matrix units. The throughput of the sparse program is "
        f"{above:.2g} x that of a step of dense products alone, at the peak rate of these units (bound).",
    )


def _tuned_gpu(results: Results) -> Verdict:
    step = next(m for m in measured_steps() if m.net == "w1-5" and m.program == "prototype")
    if not (known := _results_if_all_fit(results, matched_row("w1-5"))):
        return NOTHING
    (ipu,) = known
    faster = ipu["step_ms"] / step.ms
    return Verdict(
        "not reproduced",
        f"W1 (one recurrent layer of 256, 5 % of inputs spike): {ipu['step_ms']:.2f} ms on one IPU (predicted), {step.ms:g} ms on "
        f"{_device(step)} with a program written for this network (measured, with other weights and inputs; it multiplies all values, so "
        f"activity does not matter): the GPU is {faster:.1f} x faster. That IPUs are faster than GPU frameworks does not mean that they "
        f"are faster than a good GPU program.{_gpu_comparison(results, step.net, ipu['step_ms'])}",
    )


def _scales(results: Results) -> Verdict:
    if not (known := _results_if_all_fit(results, plan_row("shd-x1-n8-a5"), plan_row("shd-x16-n8-a5"))):
        return NOTHING
    one, many = known
    efficiency = one["step_ms"] / many["step_ms"]
    return Verdict(
        "predicted",
        f"{many['neurons']:,} neurons on 16 IPUs: {many['step_ms']:.2f} ms per step, compared with {one['step_ms']:.2f} ms for a network "
        f"1/16 as large on one IPU (both predicted): an efficiency of weak scaling of {100 * efficiency:.0f} %.",
    )


def _log_is_met(results: Results) -> Verdict:
    rows = [(run, results.get(plan_row(run.name, PUBLISHED).key, {})) for run in logged_runs()]
    ratios = [result["step_ms"] / run.logged_ms for run, result in rows if result.get("fits")]
    if not ratios:
        return NOTHING
    return Verdict(
        "predicted",
        f"The model of the published program predicts {min(ratios):.2f} to {max(ratios):.2f} x the logged times of {len(ratios)} of 12 "
        "networks; the log records neither clock nor activity.",
    )


MIN_THROUGHPUT_RATIO: Final = 2 / 3
"""Minimum ratio of a predicted to a published throughput that counts as agreement."""
MAX_ACCURACY_LOSS: Final = 1.0
"""Maximum loss of accuracy, in percentage points, that counts as no loss."""


def _final_accuracy(results: Results) -> Verdict:
    del results
    gaps: dict[str, dict[str, float]] = {}
    for data in DATA:
        runs = sparse_runs(data)
        gaps[data] = {name: runs["dense"].mean[-1] - runs[name].mean[-1] for name in SHARES if name != "dense" and name in runs}
    text = "; ".join(f"{DATA[data]} ({', '.join(f'{name}: {gap:.1f}' for name, gap in of_data.items())})" for data, of_data in gaps.items())
    met = all(gap <= MAX_ACCURACY_LOSS for of_data in gaps.values() for gap in of_data.values())
    return Verdict(
        "reproduced" if met else "not reproduced",
        f"Percentage points of test accuracy below dense training, by capacity, means of five seeds (measured): {text}. At most "
        f"{MAX_ACCURACY_LOSS:g} counts as no loss. The data are synthetic; N-MNIST, DVS Gesture and SHD were not available.",
    )


def _convergence(results: Results) -> Verdict:
    del results
    texts: list[str] = []
    slower: list[str] = []
    for data in DATA:
        runs = sparse_runs(data)
        needed = {name: epochs_needed(runs[name].mean) for name in SHARES if name in runs}
        slower += [f"{name} of {data}" for name, epochs in needed.items() if epochs > needed["dense"]]
        texts.append(f"{DATA[data]} ({', '.join(f'{name}: {epochs}' for name, epochs in needed.items())})")
    return Verdict(
        "not reproduced" if slower else "reproduced",
        "First of ten epochs from which the accuracy stays within two points of its last value, by capacity (measured): "
        f"{'; '.join(texts)}. Later than in dense training: {', '.join(slower) or 'none'}.",
    )


def epochs_needed(accuracy: Sequence[float]) -> int:
    """Return the first epoch (from 1) from which on every accuracy, in %, is at most two points below the last one."""
    below = [number for number, value in enumerate(accuracy, 1) if value < accuracy[-1] - 2.0]
    return max(below, default=0) + 1


def _population_codes(results: Results) -> Verdict:
    """Compare two codes: many steps with one output neuron per class, and one step with 50 output neurons per class (a population code)."""
    for steps, seeds in ((max(codes.STEPS), codes.SEEDS), (codes.QUICK_STEPS[0], codes.QUICK_SEEDS)):
        long, short = (results.get(codes.code_row(*sizes, seeds).key, {}) for sizes in ((steps, 1), (1, 50)))
        if "accuracy" in long and "accuracy" in short:
            before, after = (100 * fmean(row["accuracy"]) for row in (long, short))
            faster = long["update_ms"] / short["update_ms"]
            met = after >= before - MAX_ACCURACY_LOSS and faster > 1
            return Verdict(
                "reproduced" if met else "not reproduced",
                f"On the CPU (measured): {steps} steps and 1 neuron per class {before:.1f} %, 1 step and 50 neurons per class "
                f"{after:.1f} %, an update in {1 / faster:.2f} of the time. Synthetic pen strokes replace MNIST.",
            )
    return NOTHING


def _half_precision(results: Results) -> Verdict:
    ratios, bytes_ = {}, []
    for model in MODELS:
        one, half = (results.get(neuron_row(model, PRECISION_BATCH, p).key, {}) for p in ("float32", "float16"))
        if "step_ms" in one and "step_ms" in half:
            ratios[model] = one["step_ms"] / half["step_ms"]
            bytes_.append(half["peak_tile_bytes"] / one["peak_tile_bytes"])
    if not ratios:
        return NOTHING
    return Verdict(
        "predicted" if min(ratios.values()) > 1 else "not reproduced",
        f"float16 over float32, {len(ratios)} neuron models (predicted): {min(ratios.values()):.2f} to {max(ratios.values()):.2f} x the "
        f"throughput, {min(bytes_):.2f} to {max(bytes_):.2f} x the memory of the fullest tile. snnc's codelets compute in float32.",
    )


def _neuron_models(results: Results) -> Verdict:
    result = results.get(neuron_row("Leaky", 128).key)
    if not result or "samples_per_s" not in result:
        return NOTHING
    ratio = result["samples_per_s"] / QUOTED
    return Verdict(
        "predicted" if ratio >= MIN_THROUGHPUT_RATIO else "not reproduced",
        f"Leaky at batch 128: {result['samples_per_s']:,.0f} samples/s (predicted), about {QUOTED:,} (published, from the repository's "
        f"history): {ratio:.2f} x. snnc multiplies pixels without the IPU's matrix units.",
    )


def _device(step: MeasuredStep) -> str:
    return f"{step.device}, {step.date}"


CLAIMS: Final[tuple[Claim, ...]] = (
    Claim("2311.04386", "5-10x the throughput of an A100 with sparse activations", "gpu", _against_gpu),
    Claim("2311.04386", "up to 38x at higher sparsity", "activity", _at_high_sparsity),
    Claim("2311.04386", "without a significant slowdown of convergence", "convergence-strokes", _convergence),
    Claim("2311.04386", "without a significant loss of final performance", "accuracy", _final_accuracy),
    Claim("2311.04386", "a massive advantage of sparse activations on IPUs over GPUs", "gpu", _tuned_gpu),
    Claim("2311.04386", "promising trends on one and several IPUs, to 188,284 neurons and 184 M weights", "scaling", _scales),
    Claim("2311.04386", "the timings of the published log", "layers", _log_is_met),
    Claim("2211.10725", "up to 10x over CUDA in mixed precision", "neuron-models", lambda _: UNMEASURED),
    Claim("2211.10725", "throughput across a suite of neuron models (about 60,000 samples/s for Leaky)", "neuron-models", _neuron_models),
    Claim("2211.10725", "half precision reduces the time of training", "precision", _half_precision),
    Claim("2211.10725", "population codes replace sequential steps", "population-codes", _population_codes),
)
"""All claims, in the order of the page."""


def verdicts(results: Results) -> list[dict[str, Any]]:
    """Return each claim with its verdict, as JSON types."""
    return [{"paper": claim.paper, "says": claim.says, "figure": claim.figure, **asdict(claim.judge(results))} for claim in CLAIMS]
