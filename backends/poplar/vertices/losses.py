"""Emitted vertices of the loss: scores of the classes, loss and adjoints of each sample, and the sum of the losses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from snnc.backends.codegen.names import comment_text
from snnc.backends.codegen.printing import c_assignments, c_literal
from snnc.backends.native.composed_loss import length_divisor, target_form
from snnc.backends.poplar.errors import UnsupportedOnPoplarError
from snnc.backends.poplar.network import PoplarNetwork
from snnc.backends.poplar.parameters.updates import add_accumulation, rate_count
from snnc.backends.poplar.parts import ONCE, Assembly, Body
from snnc.backends.poplar.vertices.external import loss_output, population_of
from snnc.compiler.losses import Loss, MeanSquaredCount
from snnc.compiler.losses.composed import Composed
from snnc.compiler.losses.term import Term
from snnc.compiler.tiles.mapped.losses import LossShape, ScoreSlot
from snnc.compiler.tiles.vertices.loss_vertices import loss_scores, loss_sum, sample_loss
from snnc.compiler.tiles.vertices.parameter_vertices import schedule
from snnc.compiler.tiles.vertices.vertex_spec import VertexSpec

RATES: Final = "update_rates"
"""Compute set that computes the tensor ``rates`` (step sizes and bias corrections), if the update is a separate program."""


def loss_sets(net: PoplarNetwork) -> tuple[str, ...]:
    """Return the compute sets of the loss of each sample, in order."""
    return ("loss_scores", "loss_samples") if net.mapped.loss.scores else ("loss_samples",)


def add_loss(net: PoplarNetwork, assembly: Assembly) -> Body:
    """Add the vertices of the loss and of the learning rate; return the template data of the loss."""
    output = loss_output(net)
    shape = net.mapped.loss
    loss = loss_context(net.program.loss, shape, net.plan.batch, net.plan.steps, net.plan.target.workers)
    target_input = _targets(net, assembly, shape)
    assembly.on_tile("FLOAT", "loss")
    assembly.on_tile("FLOAT", "lr", "learning rate")
    assembly.on_tile("INT", "optimizer_step")
    assembly.on_tile("FLOAT", "rates", "step sizes and bias corrections, read by the updates", shape=f"{{{rate_count(net)}}}")
    assembly.tensors += [
        'tensor("loss", SNNC_RESULT, {1}, loss, {}, false);',
        'tensor("lr", SNNC_SETTING, {1}, lr, {}, true);',
        'tensor("optimizer_step", SNNC_SETTING, {1}, optimizer_step, {}, true, SNNC_INT32);',
        target_input,
    ]
    _add_loss_scale(net, assembly)
    _add_vertices(net, assembly, population_of(net, output), output.record, shape, loss["parts"])
    total = {"losses": "losses.all", "total": "loss[0]", "count": f"BATCH * {loss['parts']}"}
    assembly.add("loss", "their sum", ONCE, "loss_sum", loss_sum(net.costs), total, "0")
    rates = {"lr": "lr[0]", "step": "optimizer_step[0]", "rates": "rates", **add_accumulation(net, assembly)}
    rates |= {"loss_scale": "loss_scale[0]"} if net.mapped.scaled else {}
    vertex = schedule(net.costs, accumulates=net.mapped.accumulates, scaled=net.mapped.scaled)
    assembly.add("loss", "the learning rate", ONCE, RATES if net.mapped.extra_passes else "loss_sum", vertex, rates, "0")
    return loss


def _add_loss_scale(net: PoplarNetwork, assembly: Assembly) -> None:
    """Add the loss scale, if there is one, and two counters: updates since its last change, and skipped updates."""
    optimizer = net.program.optimizer
    if not net.mapped.scaled or optimizer is None or optimizer.loss_scale is None:
        return
    numbers = {
        "loss_scale": ("FLOAT", "factor of the gradient of the loss"),
        "gradient_scale": ("FLOAT", "loss scale of the last gradients"),
        "good_updates": ("INT", "updates since the loss scale changed"),
        "skipped_updates": ("INT", "updates skipped because a gradient was not finite"),
    }
    for name, (kind, about) in numbers.items():
        assembly.on_tile(kind, name, about)
    factor = c_literal(optimizer.loss_scale.factor)
    assembly.tensors += [
        'tensor("loss_scale", SNNC_SETTING, {1}, loss_scale, {}, true);',
        f'begins("loss_scale", {factor});',
        'tensor("good_updates", SNNC_SETTING, {1}, good_updates, {}, true, SNNC_INT32);',
        'tensor("gradient_scale", SNNC_RESULT, {1}, gradient_scale, {}, false);',
        'counter("skipped_updates", skipped_updates);',
    ]


def _targets(net: PoplarNetwork, assembly: Assembly, shape: LossShape) -> str:
    loss = net.program.loss
    if isinstance(loss, Composed) and shape.columns:
        expression = f'layout.on_tiles(loss_tiles, poplar::FLOAT, "targets", {shape.targets(net.plan.steps)})'
        assembly.variable("Parts", "targets", expression, "targets of each sample")
        return f"target_input(targets.all, {target_form(loss)}, STEPS, load_labels);"
    assembly.variable("Tensor", "labels", 'spread_samples(poplar::INT, "labels", loss_tiles)', "class of each sample")
    return f"label_input(labels, {loss.width(0) if isinstance(loss, Composed) else shape.width}, load_labels);"


def _add_vertices(net: PoplarNetwork, assembly: Assembly, population: str, record: str, shape: LossShape, parts: int) -> None:
    """Add the vertices of each sample's loss; workers share the scores in ``loss_scores`` and the steps in ``loss_samples``."""

    def on_tiles(kind: str, name: str, size: int) -> None:
        assembly.variable("Parts", name, f'layout.on_tiles(loss_tiles, poplar::{kind}, "{name}", {size})')

    def add(compute_set: str, vertex: VertexSpec, values: Mapping[str, object]) -> None:
        samples = ("std::size_t", "i", "samples_of(BATCH)")
        assembly.add("loss", "one vertex per sample", samples, compute_set, vertex, values, "loss_tiles.at(i, 0)")

    for name, constants in (("class_offset", f"class_offsets({population}, STEPS)"), ("class_stride", f"class_strides({population})")):
        assembly.variable("std::vector<Tensor>", name, f"layout.constants_on_tiles(loss_tiles, {constants})")
    places = {"offset": "class_offset[i]", "stride": "class_stride[i]", "steps": "STEPS"}
    records = {"records": f"of_sample({population}, {record}, STEPS, i)"}
    targets = {"targets": "targets[i]"} if shape.columns else {"label": "labels[i]"}
    read: Mapping[str, object] = records
    if shape.scores:
        types = {"scores": "FLOAT", **({"chosen": "INT"} if shape.chooses_step else {})}
        for name, kind in types.items():
            on_tiles(kind, name, shape.scores)
        scores = {name: f"{name}[i]" for name in types}
        read_targets = targets if shape.scores_read_targets else {}
        add("loss_scores", loss_scores(net.costs, shape), {**records, **places, **read_targets, **scores, "classes": shape.scores})
        read = {**scores, **records} if shape.reads_steps else scores
    on_tiles("FLOAT", "losses", parts)
    written = {"adjoint": f"of_sample({population}, d_{record}, STEPS, i)", "loss": "losses[i]"}
    written |= {"loss_scale": "loss_scale[0]"} if net.mapped.scaled else {}
    vertex = sample_loss(net.costs, shape, scaled=net.mapped.scaled)
    add("loss_samples", vertex, {**read, **places, **targets, **written, "classes": shape.width})


def loss_context(loss: Loss | None, shape: LossShape, batch: int, steps: int, workers: int) -> Body:
    """Return the template data of a loss; numbers are C++ literals, and ``parts`` is the number of partial losses of a sample."""
    body: Body = {
        "batch": c_literal(float(batch)),
        "scored": bool(shape.scores),
        "chosen": shape.chooses_step,
        "columns": shape.columns,
        "targets_per_worker": 0,
        "terms": (),
    }
    if isinstance(loss, Composed):
        return body | {
            "title": loss.name,
            "parts": workers,
            "kind": "label" if loss.plain_targets else loss.targets,
            "lengths": loss.lengths,
            "targets_per_worker": shape.targets_per_worker(steps),
            "slots": [_slot(slot) for slot in shape.slots],
            "terms": [_term(loss, shape, term, *bounds, steps) for term, bounds in zip(loss.terms, loss.slices, strict=True)],
        }
    if loss is None or loss.name not in {"ce_count", "ce_rate", "ce_mean_membrane", "ce_max_membrane", "mse_count"}:
        raise UnsupportedOnPoplarError(f"the loss {getattr(loss, 'name', None)!r} has no Poplar template.")
    body |= {"title": loss.name, "parts": workers if shape.reads_steps else 1}
    if isinstance(loss, MeanSquaredCount):
        body |= {
            "correct": c_literal(float(int(steps * loss.correct_rate))),
            "incorrect": c_literal(float(int(steps * loss.incorrect_rate))),
            "factor": c_literal(2 / (batch * shape.width * steps)),
            "share": c_literal(1 / (batch * shape.width * steps)),
        }
    return body


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
    compares, of_values = term.reads_targets and not term.softmax, loss.targets in ("values", "step_values")
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
        "masked": compares and of_values,
        "wanted": f"targets[i - {first}u]" if of_values else _of_classes(loss, term, first, steps),
        "from_end": time and compares and (of_values or term.on < 0 or term.off < 0),
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
