"""The claims of both abstracts that have a number, and the answer of the results to each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from snnc.benchmarks.log import logged_runs
from snnc.benchmarks.reproduce.figure import Paper, Results
from snnc.benchmarks.reproduce.figures.gpu import matched_row
from snnc.benchmarks.reproduce.figures.plans import PUBLISHED, SNNC, dense_bound, plan_row
from snnc.benchmarks.reproduce.measured import MeasuredStep, measured_steps

Answer: TypeAlias = Literal["reproduced", "predicted", "not reproduced", "cannot be said here"]


@dataclass(frozen=True)
class Verdict:
    """The answer of the results to a claim, with its numbers and their kinds."""

    answer: Answer
    why: str


@dataclass(frozen=True)
class Claim:
    """A sentence of an abstract.

    Attributes
    ----------
    paper, says
        Where it stands, and what it says, in short.
    figure
        Name of the figure that shows it; "" for none.
    judge
        What the results say.
    """

    paper: Paper
    says: str
    figure: str
    judge: Callable[[Results], Verdict]


NOTHING: Final = Verdict("cannot be said here", "No row that it needs has run.")
GPU_NET: Final = "logged-h2-a5"
"""The network of the paper's grid that a GPU was measured with."""


def _against_gpu(results: Results) -> Verdict:
    """Compare the predicted step of one network with the measured step of the same network on a GPU."""
    step = next((m for m in measured_steps() if m.net == GPU_NET), None)
    found = results.get(matched_row(GPU_NET).key)
    if step is None or not found or not found.get("fits"):
        return NOTHING
    ratio = step.ms / found["step_ms"]
    log = next(run.logged_ms for run in logged_runs() if run.name == GPU_NET)
    return Verdict(
        "cannot be said here",
        f"No A100 was measured. {GPU_NET}: {found['step_ms']:.2f} ms on one IPU (predicted), {log:g} ms (published log), {step.ms:g} ms on "
        f"{_device(step)} (measured): {ratio:.1f} x between the prediction and that GPU, with a GPU program that was far from its bound.",
    )


def _at_high_sparsity(results: Results) -> Verdict:
    sparse, dense = (results.get(plan_row("nmnist-h3-a0.5", SNNC).key), results.get(plan_row("nmnist-h3-a5", "dense").key))
    if not sparse or not dense or not (sparse.get("fits") and dense.get("fits")):
        return NOTHING
    ratio = dense["step_ms"] / sparse["step_ms"]
    bound = dense_bound("nmnist-h3-a5", 0.5).y
    assert bound is not None, "a bound is a number"
    above = 1e3 * sparse["batch"] / sparse["step_ms"] / bound
    return Verdict(
        "cannot be said here",
        f"No A100 was measured. On an IPU, at a capacity of 0.5 %, the sparse program is {ratio:.0f} x faster than snnc's program without "
        f"events, which leaves the matrix units idle (both predicted), and has {above:.2g} x the throughput of dense products at the peak "
        "of the matrix units (bound).",
    )


def _tuned_gpu(results: Results) -> Verdict:
    """A tuned GPU program of W1 beside the predicted IPU."""
    step = next((m for m in measured_steps() if m.net == "w1-5" and m.program == "prototype"), None)
    found = results.get(matched_row("w1-5").key)
    if step is None or not found or not found.get("fits"):
        return NOTHING
    faster = found["step_ms"] / step.ms
    return Verdict(
        "not reproduced",
        f"W1 (one recurrent layer of 256, 5 % of inputs spike): {found['step_ms']:.2f} ms on one IPU (predicted), {step.ms:g} ms on "
        f"{_device(step)} with a "
        f"program tuned to it (measured): the GPU is {faster:.1f} x faster. An advantage of IPUs over frameworks is not one over a "
        f"good GPU program.",
    )


def _scales(results: Results) -> Verdict:
    one, many = results.get(plan_row("shd-x1-n8-a5").key), results.get(plan_row("shd-x16-n8-a5").key)
    if not one or not many or not (one.get("fits") and many.get("fits")):
        return NOTHING
    efficiency = one["step_ms"] / many["step_ms"]
    neurons = many["neurons"]
    return Verdict(
        "predicted",
        f"{neurons:,} neurons on 16 IPUs: {many['step_ms']:.2f} ms a step, against {one['step_ms']:.2f} ms of a network a sixteenth "
        f"as large on one IPU (both predicted): weak scaling keeps {100 * efficiency:.0f} %.",
    )


def _log_is_met(results: Results) -> Verdict:
    """Compare the model of the published program with its log, as a check of all predictions."""
    ratios = []
    for run in logged_runs():
        found = results.get(plan_row(run.name, PUBLISHED).key)
        if found and found.get("fits"):
            ratios.append(found["step_ms"] / run.logged_ms)
    if not ratios:
        return NOTHING
    return Verdict(
        "predicted",
        f"The model of the published program is at {min(ratios):.2f} to {max(ratios):.2f} of its log on {len(ratios)} of 12 "
        "networks; the log records neither clock nor activity.",
    )


def _mixed_precision(results: Results) -> Verdict:
    del results
    return Verdict("cannot be said here", "Neither an IPU nor the paper's GPU was measured.")


def _device(step: MeasuredStep) -> str:
    return f"{step.device}, {step.date}"


CLAIMS: Final[tuple[Claim, ...]] = (
    Claim("2311.04386", "5-10x the throughput of an A100 with sparse activations", "layers", _against_gpu),
    Claim("2311.04386", "up to 38x at higher sparsity", "activity", _at_high_sparsity),
    Claim("2311.04386", "IPUs train SNNs faster than GPUs do", "layers", _tuned_gpu),
    Claim("2311.04386", "promising trends on one and several IPUs, to 188,284 neurons and 184 M weights", "scaling", _scales),
    Claim("2311.04386", "the timings of the published log", "layers", _log_is_met),
    Claim("2211.10725", "up to 10x over CUDA in mixed precision", "neuron-models", _mixed_precision),
)
"""All claims, in the order of the page."""


def verdicts(results: Results) -> list[dict[str, Any]]:
    """Return each claim with its answer, JSON types."""
    found: list[dict[str, Any]] = []
    for claim in CLAIMS:
        verdict = claim.judge(results)
        about: Mapping[str, Any] = {"paper": claim.paper, "says": claim.says, "figure": claim.figure}
        found.append({**about, "answer": verdict.answer, "why": verdict.why})
    return found
