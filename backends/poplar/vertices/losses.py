"""Emitted vertices of the loss: scores of the classes, loss and adjoints of each sample, and the sum of the losses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from snnc.backends.codegen.printing import c_literal
from snnc.backends.native.composed_loss import target_form
from snnc.backends.poplar.errors import UnsupportedOnPoplarError
from snnc.backends.poplar.network import PoplarNetwork
from snnc.backends.poplar.parameters.updates import add_accumulation, rate_count
from snnc.backends.poplar.parts import ONCE, Assembly, Body
from snnc.backends.poplar.vertices.composed_loss import composed_context
from snnc.backends.poplar.vertices.external import loss_output, population_of
from snnc.compiler.losses import Loss, MeanSquaredCount
from snnc.compiler.losses.composed import Composed
from snnc.compiler.tiles.mapped.losses import LossShape
from snnc.compiler.tiles.vertices.loss_vertices import loss_scores, loss_sum, sample_loss
from snnc.compiler.tiles.vertices.parameter_vertices import schedule
from snnc.compiler.tiles.vertices.vertex_spec import VertexSpec

RATES: Final = "update_rates"
"""Compute set of the rates, if the update is a separate program."""


def loss_sets(net: PoplarNetwork) -> tuple[str, ...]:
    """Return the compute sets of the loss of each sample, in order."""
    return ("loss_scores", "loss_samples") if net.described.loss.scores else ("loss_samples",)


def add_loss(net: PoplarNetwork, assembly: Assembly) -> Body:
    """Add the vertices of the loss and of the learning rate; return the template data of the loss."""
    output = loss_output(net)
    shape = net.described.loss
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
    rates |= {"loss_scale": "loss_scale[0]"} if net.described.scaled else {}
    vertex = schedule(net.costs, accumulates=net.described.accumulates, scaled=net.described.scaled)
    assembly.add("loss", "the learning rate", ONCE, RATES if net.described.passes else "loss_sum", vertex, rates, "0")
    return loss


def _add_loss_scale(net: PoplarNetwork, assembly: Assembly) -> None:
    """Add the loss scale, if there is one, and two counters: updates since its last change, and skipped updates."""
    optimizer = net.program.optimizer
    if not net.described.scaled or optimizer is None or optimizer.loss_scale is None:
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
    """Declare the targets, and return the statement with which the host sends them."""
    loss = net.program.loss
    if isinstance(loss, Composed) and shape.columns:
        made = f'layout.on_tiles(loss_tiles, poplar::FLOAT, "targets", {shape.targets(net.plan.steps)})'
        assembly.variable("Parts", "targets", made, "targets of each sample")
        return f"target_input(targets.all, {target_form(loss)}, STEPS, load_labels);"
    assembly.variable("Tensor", "labels", 'spread_samples(poplar::INT, "labels", loss_tiles)', "class of each sample")
    return f"label_input(labels, {loss.width(0) if isinstance(loss, Composed) else shape.width}, load_labels);"


def _add_vertices(net: PoplarNetwork, assembly: Assembly, population: str, record: str, shape: LossShape, parts: int) -> None:
    """Add the vertices of each sample's loss; the workers of a tile divide the scores among themselves, then the steps."""

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
    written |= {"loss_scale": "loss_scale[0]"} if net.described.scaled else {}
    vertex = sample_loss(net.costs, shape, scaled=net.described.scaled)
    add("loss_samples", vertex, {**read, **places, **targets, **written, "classes": shape.width})


def loss_context(loss: Loss | None, shape: LossShape, batch: int, steps: int, workers: int) -> Body:
    """Return the template data of a loss; numbers are C++ literals."""
    if isinstance(loss, Composed):
        return composed_context(loss, shape, batch, steps, workers)
    if loss is None or loss.name not in {"ce_count", "ce_rate", "ce_mean_membrane", "ce_max_membrane", "mse_count"}:
        raise UnsupportedOnPoplarError(f"the loss {getattr(loss, 'name', None)!r} has no Poplar template.")
    body: Body = {
        "title": loss.name,
        "batch": c_literal(float(batch)),
        "scored": bool(shape.scores),
        "parts": workers if shape.reads_steps else 1,
        "chosen": shape.chooses_step,
        "columns": 0,
        "looked_at": 0,
        "terms": (),
    }
    if isinstance(loss, MeanSquaredCount):
        body |= {
            "correct": c_literal(float(int(steps * loss.correct_rate))),
            "incorrect": c_literal(float(int(steps * loss.incorrect_rate))),
            "factor": c_literal(2 / (batch * shape.width * steps)),
            "share": c_literal(1 / (batch * shape.width * steps)),
        }
    return body
