"""Vertices of the loss: scores of the classes, the loss of each sample, and the sum of losses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from snnc.compiler.tiles.mapped.losses import LossShape
from snnc.compiler.tiles.vertices.cost import CodeletCost
from snnc.compiler.tiles.vertices.loops import Amount, looping
from snnc.compiler.tiles.vertices.parameter_vertices import LOSS_SCALE
from snnc.compiler.tiles.vertices.vertex_spec import FieldSpec, VertexSpec, constant, many, one

_RECORDS: Final = many("input", "float", "records", "Recorded outputs of the sample: class c at step t is offset[c] + t * stride[c].")
_PLACES: Final = (
    many("input", "unsigned", "offset", "Offset of the records of each class."),
    many("input", "unsigned", "stride", "Elements from one step of a class to the next."),
)
_SIZES: Final = (constant("steps", "Number of steps.", "int"), constant("classes", "Number of classes."))
_SUM: Final = (
    many("input", "float", "losses", "The losses of all samples."),
    one("output", "float", "total", "Their sum."),
    constant("count", "Number of losses."),
)
_TARGETS: Final = many("input", "float", "targets", "The targets of the sample; if each step has its own, those of step 0 first.")


def _scores(loss: LossShape, *, written: bool) -> tuple[FieldSpec, ...]:
    access: Final = "output" if written else "input"
    scores = many(access, "float", "scores", "The scores of the classes.")
    return (scores, many(access, "int", "chosen", "The step at which a score was read.")) if loss.chooses_step else (scores,)


def loss_scores(costs: Mapping[str, CodeletCost], loss: LossShape) -> VertexSpec:
    """Return the vertex that computes the scores of a sample."""
    cost, targets = costs["loss_scores"], (_TARGETS,) if loss.scores_read_targets else ()
    loops = (
        *looping("classes", Amount("classes"), cost.sample),
        *looping("steps of a class", Amount("classes") * Amount("steps"), cost.element),
    )
    return VertexSpec("loss_scores", (_RECORDS, *_PLACES, *targets, *_scores(loss, written=True), *_SIZES), cost, loops)


def sample_loss(costs: Mapping[str, CodeletCost], loss: LossShape, *, scaled: bool = False) -> VertexSpec:
    """Return the vertex that computes the loss of a sample and the adjoints of its records; `scaled` multiplies these by the loss scale."""
    fields = (
        *(_scores(loss, written=False) if loss.scores else ()),
        *((_RECORDS,) if loss.reads_steps else ()),
        *_PLACES,
        _TARGETS if loss.columns else one("input", "int", "label", "The class of the sample."),
        many("output", "float", "adjoint", "Adjoints of the records, in the layout of the records."),
        many("output", "float", "loss", "The loss of each worker's steps." if loss.reads_steps else "The loss of the sample."),
        *_SIZES,
        *((LOSS_SCALE,) if scaled else ()),
    )
    cost = costs["loss"]
    loops = (
        *looping("classes", Amount("classes"), cost.sample),
        *looping("steps", Amount("steps"), cost.row),
        *looping("classes of a step", Amount("steps") * Amount("classes"), cost.element),
        *looping("targets", Amount("targets"), cost.value),
    )
    return VertexSpec("loss", fields, cost, loops)


def loss_sum(costs: Mapping[str, CodeletCost]) -> VertexSpec:
    """Return the vertex that sums the losses of all samples."""
    return VertexSpec("loss_sum", _SUM, costs["reduce"], tuple(looping("losses", Amount("count"), costs["reduce"].element)))
