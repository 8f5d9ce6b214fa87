"""Template data of the codelets of composed losses."""

from __future__ import annotations

import numpy as np

from snnc.backends.codegen.names import comment_text
from snnc.backends.codegen.printing import c_assignments, c_literal
from snnc.backends.native.composed_loss import length_divisor
from snnc.backends.poplar.parts import Body
from snnc.compiler.losses.composed import Composed
from snnc.compiler.losses.term import Term
from snnc.compiler.tiles.mapped.losses import LossShape, ScoreSlot


def composed_context(loss: Composed, shape: LossShape, batch: int, steps: int, workers: int) -> Body:
    """Return the template data of a loss; numbers are C++ literals."""
    return {
        "title": loss.name,
        "batch": c_literal(float(batch)),
        "scored": bool(shape.scores),
        "parts": workers,
        "chosen": shape.chooses_step,
        "kind": "label" if loss.plain_targets else loss.targets,
        "columns": shape.columns,
        "lengths": loss.lengths,
        "looked_at": shape.looked_at(steps),
        "slots": [_slot(slot) for slot in shape.slots],
        "terms": [_term(loss, shape, term, *bounds, steps) for term, bounds in zip(loss.terms, loss.slices, strict=True)],
    }


def _slot(slot: ScoreSlot) -> Body:
    """Return the template data of some consecutive scores: one statistic of some outputs."""
    return {
        "first": slot.first,
        "place": slot.place,
        "stop": slot.place + slot.stop - slot.first,
        "known": slot.kind == "known",
        "sums": slot.kind in ("count", "mean"),
        "mean": slot.kind == "mean",
        "time": slot.kind == "first_spike",
        "maximum": slot.kind == "max",
    }


def _term(loss: Composed, shape: LossShape, term: Term, first: int, stop: int, steps: int) -> Body:
    """Return the template data of a term of the loss, for the outputs `first` … `stop` - 1."""
    compares, numbers = term.reads_targets and not term.softmax, loss.targets in ("values", "step_values")
    inverse, time = term.inverse == "reciprocal", term.statistic == "first_spike"
    known = loss.targets == "step_values" and term.reads_targets
    score = "scores[place(i)]"
    if time and term.softmax:
        score = f"1.0f / ({score} + 1.0f)" if inverse else f"-{score}"
    of_steps = term.statistic == "steps"
    slot = None if of_steps and not known else shape.score_of("known" if known else term.statistic, first, stop)
    return {
        "title": comment_text(f"{term.statistic} of outputs {first} … {stop - 1}: {term.criterion}, times {term.weight:g}."),
        "first": first,
        "stop": stop,
        "width": stop - first,
        "place": 0 if slot is None else slot.place,
        "weight": c_literal(term.weight),
        "steps": of_steps,
        "softmax": term.softmax,
        "sums": term.statistic in ("count", "mean"),
        "mean": term.statistic == "mean",
        "time": time,
        "score": score,
        "factor": " * score(i) * score(i)" if time and inverse else "",
        "compares": compares,
        "masked": compares and numbers,
        "wanted": f"targets[i - {first}u]" if numbers else _of_classes(loss, term, first, steps),
        "from_end": time and compares and (numbers or term.on < 0 or term.off < 0),
        "scale": length_divisor(term),
        "equations": c_assignments(term.equations),
    }


def _of_classes(loss: Composed, term: Term, first: int, steps: int) -> str:
    """Return the C++ for the target of output i; the C++ variable ``right`` is the class of the sample or step."""
    on, off = (c_literal(number) for number in (term.on, term.off))
    if term.squares_counts:
        on, off = (_spikes(number, loss.group, steps, loss.lengths) for number in (term.on, term.off))
    return f"static_cast<int>(i) == {first} + right ? {on} : {off}"


def _spikes(rate: float, group: int, steps: int, lengths: bool) -> str:
    """Return the C++ for the target number of spikes of a class, ``int(length * rate * group)``.

    Lengths for which float32 arithmetic gives another number are listed in the expression.
    """
    if not lengths:
        return c_literal(float(int(steps * rate * group)))
    per_step = np.float32(rate * group)
    exact = {length: int(length * rate * group) for length in range(1, steps + 1)}
    others = [(length, spikes) for length, spikes in exact.items() if int(np.float32(length) * per_step) != spikes]
    cases = "".join(f"length == {c_literal(float(length))} ? {c_literal(float(spikes))} : " for length, spikes in others)
    return f"({cases}static_cast<float>(static_cast<int>(length * {c_literal(float(per_step))})))"
