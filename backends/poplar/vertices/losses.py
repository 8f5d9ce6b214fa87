"""The loss: scores of the classes, the loss of each sample with the adjoints of its records, their sum."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from snnc.backends.codegen.names import comment_text
from snnc.backends.codegen.printing import c_assignments, c_literal
from snnc.backends.poplar.errors import UnsupportedOnPoplarError
from snnc.backends.poplar.network import PoplarNetwork
from snnc.backends.poplar.parts import Assembly, Body, VertexLoop, class_name, connected
from snnc.backends.poplar.vertices.updates import add_accumulation, rate_numbers, scaled, scheduled
from snnc.compiler.losses import Loss, MeanSquaredCount
from snnc.compiler.losses.composed import Composed
from snnc.compiler.losses.term import Term
from snnc.compiler.tiles.network import chooses_step, reads_steps, takes_scores
from snnc.compiler.tiles.vertices.loss_vertices import loss_scores, loss_sum, sample_loss
from snnc.compiler.tiles.vertices.vertex_spec import VertexSpec

_ONE: Final = ("", "", "")
"""A single vertex, no loop."""
_TILE: Final = "0"


def check_loss(loss: Loss | None) -> None:
    """Refuse a loss that no codelet computes.

    Raises
    ------
    UnsupportedOnPoplarError
        Its targets are not classes alone, or two of its terms have different statistics of the same outputs.
    """
    if not isinstance(loss, Composed):
        return
    if loss.targets != "class" or loss.lengths:
        raise UnsupportedOnPoplarError(
            f"a machine's program takes the class of each sample as target, and the loss has {'lengths' if loss.lengths else loss.targets}"
            "; compile for reference, cpu or cuda."
        )
    kept = {(bounds, term.statistic) for term, bounds in zip(loss.terms, loss.slices, strict=True) if term.statistic != "steps"}
    if len({bounds for bounds, _ in kept}) < len(kept):
        raise UnsupportedOnPoplarError(
            "a machine's program keeps one statistic over time of each output, and two terms of the loss have different ones of the "
            "same outputs; compile for reference, cpu or cuda."
        )


def loss_sets(net: PoplarNetwork) -> tuple[str, ...]:
    """Compute sets of the loss of each sample, in order; a loss of every step needs no scores of the whole sequence."""
    loss = net.program.loss
    return ("loss_scores", "loss_samples") if takes_scores(loss.name if loss is not None else None) else ("loss_samples",)


def add_loss(net: PoplarNetwork, assembly: Assembly) -> Body:
    """Add loss and learning-rate vertices; return what the loss's template needs."""
    output = next(o for o in net.program.outputs if o.id == net.program.loss_output)
    population = next(p for p in net.program.populations if output.source.buffer in net.step(p.id).outputs)
    classes = net.neurons[population.id]
    given = net.program.loss
    loss = loss_context(given, net.plan.batch, net.plan.steps, classes, net.plan.target.workers)
    assembly.variable("Tensor", "labels", 'spread_samples(poplar::INT, "labels", loss_tiles)', "class of each sample")
    assembly.variable("Tensor", "loss", f'layout.on_tile(poplar::FLOAT, {{1}}, "loss", {_TILE})')
    assembly.variable("Tensor", "lr", f'layout.on_tile(poplar::FLOAT, {{1}}, "lr", {_TILE})', "learning rate")
    assembly.variable("Tensor", "optimizer_step", f'layout.on_tile(poplar::INT, {{1}}, "optimizer_step", {_TILE})')
    assembly.variable(
        "Tensor", "rates", f'layout.on_tile(poplar::FLOAT, {{{rate_numbers(net)}}}, "rates", {_TILE})', "what the update reads"
    )
    assembly.tensors += [
        'tensor("loss", SNNC_RESULT, {1}, loss, {}, false);',
        'tensor("lr", SNNC_SETTING, {1}, lr, {}, true);',
        'tensor("optimizer_step", SNNC_SETTING, {1}, optimizer_step, {}, true, SNNC_INT32);',
        f"label_input(labels, {given.width(0) if isinstance(given, Composed) else classes}, load_labels);",
    ]
    _add_factor(net, assembly)
    _add_vertices(net, assembly, population.id, output.record, classes, loss)
    adds, rates = loss_sum(net.costs), scheduled(net)
    total = connected(adds, {"losses": "losses.all", "total": "loss[0]", "count": f"BATCH * {loss['parts']}"})
    assembly.loop("loss", VertexLoop("their sum", *_ONE, "loss_sum", class_name(adds), _TILE, total))
    factor = {"loss_scale": "loss_scale[0]"} if scaled(net) else {}
    fields = connected(rates, {"lr": "lr[0]", "step": "optimizer_step[0]", "rates": "rates", **add_accumulation(net, assembly), **factor})
    assembly.loop("loss", VertexLoop("the learning rate", *_ONE, "loss_sum", class_name(rates), _TILE, fields))
    return loss


def _add_factor(net: PoplarNetwork, assembly: Assembly) -> None:
    """The factor of a scaled loss, and what is counted of its updates."""
    optimizer = net.program.optimizer
    if not scaled(net) or optimizer is None or optimizer.loss_scale is None:
        return
    numbers = {
        "loss_scale": ("FLOAT", "factor of the loss's gradient"),
        "gradient_scale": ("FLOAT", "factor of the last gradients"),
        "good_updates": ("INT", "updates since the factor changed"),
        "skipped_updates": ("INT", "updates that were skipped, because a gradient was not finite"),
    }
    for name, (kind, about) in numbers.items():
        assembly.variable("Tensor", name, f'layout.on_tile(poplar::{kind}, {{1}}, "{name}", {_TILE})', about)
    factor = c_literal(optimizer.loss_scale.factor)
    assembly.tensors += [
        'tensor("loss_scale", SNNC_SETTING, {1}, loss_scale, {}, true);',
        f'begins("loss_scale", {factor});',
        'tensor("good_updates", SNNC_SETTING, {1}, good_updates, {}, true, SNNC_INT32);',
        'tensor("gradient_scale", SNNC_RESULT, {1}, gradient_scale, {}, false);',
        'counter("skipped_updates", skipped_updates);',
    ]


def _add_vertices(net: PoplarNetwork, assembly: Assembly, population: str, record: str, classes: int, loss: Body) -> None:
    """All workers of the tile of a sample's loss share its classes, then its steps."""

    def on_tiles(kind: str, name: str, each: object, comment: str = "") -> None:
        assembly.variable("Parts", name, f'layout.on_tiles(loss_tiles, poplar::{kind}, "{name}", {each})', comment)

    def add(compute_set: str, vertex: VertexSpec, values: Mapping[str, object]) -> None:
        fields = connected(vertex, values)
        loop = ("one vertex a sample", "std::size_t", "i", "samples_of(BATCH)", compute_set, class_name(vertex), "loss_tiles.at(i, 0)")
        assembly.loop("loss", VertexLoop(*loop, fields))

    for name, found in (("class_offset", f"class_offsets({population}, STEPS)"), ("class_stride", f"class_strides({population})")):
        assembly.variable("std::vector<Tensor>", name, f"layout.constants_on_tiles(loss_tiles, {found})")
    places = {"offset": "class_offset[i]", "stride": "class_stride[i]", "steps": "STEPS", "classes": classes}
    read = {"records": f"of_sample({population}, {record}, STEPS, i)"}
    if loss["scored"]:
        kept = {"scores": "FLOAT", **({"chosen": "INT"} if loss["chosen"] else {})}
        for name, kind in kept.items():
            on_tiles(kind, name, classes)
        shown = {name: f"{name}[i]" for name in kept}
        add("loss_scores", loss_scores(net.costs, loss["title"]), {**read, **places, **shown})
        read = {**shown, **read} if reads_steps(loss["title"]) else shown
    on_tiles("FLOAT", "losses", loss["parts"])
    written = {"adjoint": f"of_sample({population}, d_{record}, STEPS, i)", "loss": "losses[i]"}
    written |= {"loss_scale": "loss_scale[0]"} if scaled(net) else {}
    vertex = sample_loss(net.costs, loss["title"], scaled=scaled(net))
    add("loss_samples", vertex, {**read, **places, "label": "labels[i]", **written})


def loss_context(loss: Loss | None, batch: int, steps: int, classes: int, workers: int) -> Body:
    """Numbers of a loss, as C++ literals."""
    if isinstance(loss, Composed):
        return {
            "title": loss.name,
            "batch": c_literal(float(batch)),
            "scored": True,
            "parts": workers,
            "chosen": True,
            "terms": [_term(loss, term, *bounds, steps) for term, bounds in zip(loss.terms, loss.slices, strict=True)],
        }
    if loss is None or loss.name not in {"ce_count", "ce_rate", "ce_mean_membrane", "ce_max_membrane", "mse_count"}:
        raise UnsupportedOnPoplarError(f"the loss {getattr(loss, 'name', None)!r} has no Poplar template.")
    found: Body = {
        "title": loss.name,
        "batch": c_literal(float(batch)),
        "scored": takes_scores(loss.name),
        "parts": 1 if takes_scores(loss.name) else workers,
        "chosen": chooses_step(loss.name),
    }
    if isinstance(loss, MeanSquaredCount):
        found |= {
            "correct": c_literal(float(int(steps * loss.correct_rate))),
            "incorrect": c_literal(float(int(steps * loss.incorrect_rate))),
            "factor": c_literal(2 / (batch * classes * steps)),
            "share": c_literal(1 / (batch * classes * steps)),
        }
    return found


def _term(loss: Composed, term: Term, first: int, stop: int, steps: int) -> Body:
    """What the codelets of a composed loss print of a term."""
    on, off = (c_literal(number) for number in (term.on, term.off))
    if term.squares_counts:
        on, off = (c_literal(float(int(steps * number * loss.group))) for number in (term.on, term.off))
    if term.statistic == "first_spike":
        on, off = (c_literal(steps + number if number < 0 else number) for number in (term.on, term.off))
    inverse, time = term.inverse == "reciprocal", term.statistic == "first_spike"
    score = ("1.0f / (scores[i] + 1.0f)" if inverse else "-scores[i]") if time else "scores[i]"
    return {
        "title": comment_text(f"{term.statistic} of outputs {first} … {stop - 1}: {term.criterion}, times {term.weight:g}."),
        "first": first,
        "stop": stop,
        "width": stop - first,
        "weight": c_literal(term.weight),
        "steps": term.statistic == "steps",
        "softmax": term.softmax,
        "sums": term.statistic in ("count", "mean"),
        "mean": term.statistic == "mean",
        "time": time,
        "step": "step_of_maximum" if term.statistic == "max" else "",
        "score": score,
        "factor": " * score(i) * score(i)" if time and inverse else "",
        "compares": term.reads_targets and not term.softmax,
        "on": on,
        "off": off,
        "scale": c_literal(term.scale(steps)),
        "equations": c_assignments(term.equations),
    }
