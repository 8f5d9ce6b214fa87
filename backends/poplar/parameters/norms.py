"""Emitted code that clips gradients by their joint norm, and skips updates if a gradient is not finite.

Gradients are squared where they are summed. The squares are summed by tile and, if there are several chips, by chip; the clipping factor is
computed from the total.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from snnc.backends.codegen.printing import c_literal
from snnc.backends.codegen.updates import printed_rule
from snnc.backends.poplar.network import PoplarNetwork
from snnc.backends.poplar.parameters.updates import FACTOR, clips, rates_per_group, sum_before_updates
from snnc.backends.poplar.parts import ONCE, Assembly, Body, VertexLoop, class_name, connected
from snnc.compiler.losses.update_rules import NORM_EPSILON
from snnc.compiler.tiles.vertices.loss_vertices import loss_sum
from snnc.compiler.tiles.vertices.parameter_vertices import clip, judge_update, squares

_SQUARES: Final = "square_gradients"
_JUDGED: Final = "judge_update"
_TITLES: Final = {
    _SQUARES: "U1 squares",
    "norm_of_tiles": "U1 norm of tiles",
    "norm_of_chips": "U1 norm of chips",
    "norm": "U1 norm",
    _JUDGED: "U1 loss scale",
}
"""Compute set -> its title, in order."""


def norm_sets(net: PoplarNetwork) -> dict[str, str]:
    """Return the compute sets between the gradients and a clipped or skipped update, in order, with their titles."""
    if not clips(net):
        return {}
    left_out = {"norm_of_chips": net.plan.target.chips == 1, _JUDGED: not net.mapped.scaled}
    return {name: title for name, title in _TITLES.items() if not left_out.get(name)}


def add_norm(net: PoplarNetwork, assembly: Assembly) -> None:
    """Add vertices that sum gradients and their squares; the existing updates, which follow, then read only the sums."""
    if not clips(net):
        return
    assembly.variable(
        "std::unique_ptr<SquareSums>", "square_sums", "std::make_unique<SquareSums>(graph)", "sums of squares of the gradients"
    )
    assembly.on_tile("FLOAT", FACTOR.removesuffix("[0]"), "factor that clips all gradients")
    vertex = squares(net.costs, accumulates=net.mapped.accumulates, scaled=net.mapped.scaled)

    def squared(update: VertexLoop) -> VertexLoop:
        values = {f.name: update.values[f.name] for f in vertex.fields if f.name in update.values}
        sums = f"square_sums->add({update.tile}, {net.plan.target.workers})"
        values = connected(vertex, {**values, "sums": update.values["gradient"], "squares": sums})
        return replace(update, compute_set=_SQUARES, codelet=class_name(vertex), vertex=vertex, values=values)

    # The new vertices add the sum of earlier batches' gradients (`kept`), so updates no longer read it.
    sum_before_updates(net, assembly, squared, without="kept")
    _add_sums(net, assembly)


def _add_sums(net: PoplarNetwork, assembly: Assembly) -> None:
    target, values = net.plan.target, {"losses": "s.parts", "total": "s.sum[0]", "count": "s.parts.numElements()"}
    levels = {"tiles": "square_sums->of_tiles()"}
    if target.chips > 1:
        levels["chips"] = f"square_sums->of_chips({target.tiles_per_chip})"
    for level, sums in levels.items():
        assembly.add("update", f"squares of {level}", ("SquareSum", "s", sums), f"norm_of_{level}", loss_sum(net.costs), values)
    values = {"squares": "square_sums->all()", "factor": FACTOR, "count": "square_sums->all().numElements()"}
    assembly.add("update", "the factor", ONCE, "norm", clip(net.costs), values, "0")
    if not net.mapped.scaled:
        return
    vertex = judge_update(net.costs, accumulates=net.mapped.accumulates)
    values = {"factor": FACTOR, "step": "optimizer_step[0]", "good": "good_updates[0]", "skipped": "skipped_updates[0]"}
    values |= {"loss_scale": "loss_scale[0]", "gradient_scale": "gradient_scale[0]"}
    values |= {"batches": "batches[0]"} if net.mapped.accumulates else {}
    assembly.add("update", "decides whether the update is skipped", ONCE, _JUDGED, vertex, values, "0")


def norm_codelets(net: PoplarNetwork) -> list[Body]:
    """Return the template data of the codelets for squares, clipping factor and loss scale."""
    optimizer, accumulates, scaled = net.program.optimizer, net.mapped.accumulates, net.mapped.scaled
    if optimizer is None or not clips(net):
        return []
    vertices = {"vertex": squares(net.costs, accumulates=accumulates, scaled=scaled), "factor": clip(net.costs)}
    limit = "" if optimizer.clip_norm is None else c_literal(optimizer.clip_norm)
    rule = printed_rule(optimizer, gradient="gradient[i]")
    numbers: Body = {"norm": limit, "epsilon": c_literal(NORM_EPSILON), "scaled": rule["loss_scale"]}
    numbers |= {"judge": judge_update(net.costs, accumulates=accumulates)} if scaled else {}
    return [{"template": "norms", "rule": rule, "accumulates": accumulates, "width": rates_per_group(net), **vertices, **numbers}]
