"""The data that the templates of composed losses (sums of terms that the user chooses) are rendered with, for the CPU and CUDA backends."""

from __future__ import annotations

from typing import Any

from snnc.backends.codegen.names import comment_text
from snnc.backends.codegen.printing import c_assignments
from snnc.compiler.losses import Loss
from snnc.compiler.losses.composed import Composed
from snnc.compiler.losses.term import Term

_STEPS = {
    "last": ("last_step", "Last step."),
    "max": ("step_of_maximum", "First step with the maximum."),
    "first_spike": ("first_spike", "First step with a spike; the last step if there is none."),
}
"""Statistic -> name of the C++ function that returns the step at which the output is read, and the function's comment."""


def composed_context(loss: Composed) -> dict[str, Any]:
    """Return the data of a lowered loss for the templates ``loss_composed``."""
    compared = loss.width(0)  # number of outputs with targets; a lowered loss does not read the argument
    terms = [_term(loss, term, *bounds) for term, bounds in zip(loss.terms, loss.slices, strict=True)]
    columns = loss.columns  # stored numbers of a sample or step, with the sequence's length if given
    stride = f"{columns} * static_cast<std::size_t>(steps)" if loss.targets.startswith("step") else f"{columns}"
    used = {term.statistic for term in loss.terms}
    return {
        "title": comment_text(f"{len(terms)} terms" if len(terms) > 1 else terms[0]["title"].rstrip(".")),
        "width": max(stop for _, stop in loss.slices),  # number of outputs that the terms read
        "terms": terms,
        "steps_of": [{"name": name, "comment": comment} for kind, (name, comment) in _STEPS.items() if kind in used],
        "plain": loss.plain_targets,
        "kind": loss.targets,
        "columns": compared,  # targets of a step, if they are values of steps
        "masked": any(term["masked"] for term in terms),
        "given": "int" if loss.plain_targets else "const float *",
        "length": f"static_cast<int>(given[{columns - 1}])" if loss.lengths else "steps",
        "from_task": "task.labels[b]" if loss.plain_targets else f"task.targets + static_cast<std::size_t>(b) * {stride}",
        "of_sample": f"&targets[static_cast<std::size_t>(b) * {stride}]",
    }


def target_setup(loss: Loss | None, classes: int) -> str:
    """Return the statement that registers the targets of a loss: one of `classes` labels per sample, or the targets of a composed loss."""
    if isinstance(loss, Composed) and not loss.plain_targets:
        return f"add_targets({target_form(loss)});"
    return f"add_labels({classes});"


def target_form(loss: Composed) -> str:
    """Return the form of a loss's targets as a C++ initialiser.

    Its members are the number of columns, the number of classes (0 for targets that are values), whether there is a target for each step,
    and whether the length of each sample is given.
    """
    of_classes = loss.targets in ("class", "step_classes")
    each_step, lengths = (str(flag).lower() for flag in (loss.targets.startswith("step"), bool(loss.lengths)))
    return f"{{{loss.columns}, {loss.width(0) if of_classes else 0}, {each_step}, {lengths}}}"


def length_divisor(term: Term) -> str:
    """Return the C++ (and Python) that divides a term by the sequence's length, or by its square, if :meth:`Term.scale` does so."""
    # The scale of two steps is 1, 1/2 or 1/4.
    return {1: "", 2: " / length", 4: " / (length * length)"}[round(1 / term.scale(2.0))]


def _term(loss: Composed, term: Term, first: int, stop: int) -> dict[str, Any]:
    compares, value_targets = term.reads_targets and not term.softmax, loss.targets in ("values", "step_values")
    on, off = (repr(float(number)) for number in (term.on, term.off))
    if term.squares_counts:  # numbers of spikes of a class, which has `loss.group` neurons
        on, off = (f"static_cast<double>(static_cast<int>(length * {number} * {loss.group}))" for number in (on, off))
    # The adjoint at the first spike has the opposite sign of the derivative with respect to its time: a larger output fires earlier.
    # In the code of "spread", `of.scores` already contains the gradients of the scores.
    outputs = f"{first}" if stop - first == 1 else f"{first} … {stop - 1}"
    criterion = "cross entropy" if term.softmax else term.criterion
    inverse = term.softmax and term.inverse == "reciprocal"
    return {
        "title": comment_text(f"{term.statistic} of outputs {outputs}: {criterion}, times {term.weight:g}."),
        "first": first,
        "width": stop - first,
        "weight": repr(float(term.weight)),
        "steps": term.statistic == "steps",
        "softmax": term.softmax,
        "sums": term.statistic in ("count", "mean"),
        "mean": term.statistic == "mean",
        "time": term.statistic == "first_spike",
        "step": _STEPS.get(term.statistic, ("",))[0],
        "score": "1 / (x + 1)" if inverse else "-x" if term.softmax else "x",
        "spread": "of.scores[c] / ((at + 1.0) * (at + 1.0))" if inverse else f"{'' if term.softmax else '-'}of.scores[c]",
        "scale": f"1.0{length_divisor(term)}",
        "compares": compares,
        "masked": compares and (value_targets or loss.targets == "step_classes"),  # whether some of the targets may be ignored
        "wanted": "of.wanted(0, c)" if value_targets else f"c == of.label(0) ? {on} : {off}",
        "wanted_at": "of.wanted(t, c)" if value_targets else f"c == of.label(t) ? {on} : {off}",
        "equations": c_assignments(term.equations, "double"),
    }
