"""Vertices of parameters: sums of gradients, updates, and copies of weights for sources, which multiply deltas by them.

Each block of a population (some neurons of a tile, for some samples) computes a private gradient, and the private gradients are summed.
Several tiles may use one weight of an indexed connection, such as a convolution; its owner is the tile that updates it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

from snnc.compiler.losses.weight_rounding import REMAINDER, Rounding
from snnc.compiler.tiles.vertices.cost import SUMMANDS, CodeletCost
from snnc.compiler.tiles.vertices.loops import Amount, Loop, looping, pairs
from snnc.compiler.tiles.vertices.vertex_spec import FieldSpec, VertexSpec, constant, many, one

_RATES: Final = many("input", "float", "rates", "step sizes and bias corrections")
_SCHEDULE: Final = (
    one("input", "float", "lr", "the learning rate"),
    one("inout", "int", "step", "number of updates so far"),
    many("output", "float", "rates", _RATES.contents),
)
LOSS_SCALE: Final = one("input", "float", "loss_scale", "the factor of the loss's gradient")
KEPT: Final = many("inout", "float", "kept", "the sum of earlier batches' gradients")
_ACCUMULATED: Final = (
    one("input", "int", "batches", "earlier batches whose gradients are stored; -1: store this batch's gradients without an update"),
    one("output", "bool", "updating", "whether this step updates the parameters"),
)
_SUM_PRIVATE: Final = (
    many("inout", "float", "sums", "gradients of the first block of a group"),
    many("input", "float", "others", "gradients of the other blocks"),
    constant("count", "gradients per block"),
    constant("parts", "blocks"),
)
_SUM_PIECES: Final = (
    many("input", "float", "pieces", "the groups' parts of the owner's gradient"),
    many("input", "unsigned", "place", "start of each piece in the sum, and its length"),
    many("output", "float", "total", "the sum"),
    constant("number", "pieces"),
    constant("count", "elements of the sum"),
)
_WEIGHT_ROWS: Final = (
    many("input", "float", "pieces", "rows of weights, ordered by group of the target"),
    many("input", "unsigned", "runs", "runs of equal tiles of the target: number of tiles, columns, groups, and columns of each group"),
    many("output", "float", "rows", "rows of weights in the order of the target's neurons"),
    constant("count", "rows"),
    constant("outputs", "neurons of the target"),
    constant("length", "elements of `runs`"),
)
_PACK_ROWS: Final = (
    many("input", "float", "pieces", "rows of weights, piece after piece"),
    many("input", "unsigned", "widths", "columns of each piece"),
    many("input", "unsigned", "runs", "runs of tiles that receive the same number of rows: number of tiles, rows per tile"),
    many("output", "float", "packed", "rows in the order of their destination tiles"),
    constant("number", "pieces"),
    constant("length", "elements of `runs`"),
    constant("rows", "rows per piece"),
    constant("columns", "columns of all pieces"),
)


def update(costs: Mapping[str, CodeletCost], moments: int, *, accumulates: bool = False, clips: bool = False) -> VertexSpec:
    """Return the vertex that updates parameters with `moments` moments each; with `clips`, gradients are clipped to a norm."""
    fields = (
        _RATES,
        many("inout", "float", "value", "parameters"),
        many("inout", "float", "gradient", "first gradient of each parameter; afterwards the sum of all gradients"),
        many("input", "float", "others", "all other gradients"),
        *(many("inout", "float", f"moment{n + 1}", "state of the optimiser") for n in range(moments)),
        *([KEPT] if accumulates and not clips else []),
        *([one("input", "float", "clip", "factor that scales the gradients down to the norm")] if clips else []),
        constant("count", "parameters"),
        constant("parts", "gradients per parameter"),
    )
    return VertexSpec("update", fields, costs["update"], _with_sums("parameters", costs["update"]))


def update_half(
    costs: Mapping[str, CodeletCost],
    moments: int,
    *,
    accumulates: bool = False,
    clips: bool = False,
    rounding: Rounding | None = "nearest",
    placed: bool = False,
) -> VertexSpec:
    """Return the vertex that updates and rounds float16 weights; if `placed`, stochastic rounding reads their positions from a table."""
    unrounded = update(costs, moments, accumulates=accumulates, clips=clips)
    values = many("inout", "half", "value", "weights", align=4)
    fields = tuple(values if spec.name == "value" else spec for spec in unrounded.fields)
    cost, placed = costs["update_half"], placed and rounding == "stochastic"
    name = "update_half_placed" if placed else "update_half"
    return VertexSpec(name, (*fields, *rounding_fields(rounding, placed=placed)), cost, _with_sums("parameters", cost))


def rounding_fields(rounding: Rounding | None, *, placed: bool = False) -> tuple[FieldSpec, ...]:
    """Return the additional fields of an update of float16 weights: positions for random numbers, or the remainders of rounding."""
    if rounding == "master":
        return (many("inout", "float", REMAINDER, "remainders of rounding"),)
    if rounding != "stochastic":
        return ()
    random = one("input", "int", "updates", "number of this update, from 1"), constant("key", "key of the parameter's random numbers")
    if placed:
        return (*random, many("input", "unsigned", "places", "position of each weight in the model's array"))
    return (
        *random,
        constant("begin", "index of the first weight within the group"),
        constant("first", "neuron of the group's first column"),
        constant("columns", "columns of the group"),
        constant("inputs", "rows of the group's weights"),
    )


def squares(costs: Mapping[str, CodeletCost], *, accumulates: bool = False, scaled: bool = False) -> VertexSpec:
    """Return the vertex that sums gradients of parameters before their update, and the squares of the sums."""
    fields = (
        *([_RATES] if accumulates or scaled else []),
        many("inout", "float", "sums", "the first gradient; afterwards the sum of all gradients"),
        many("input", "float", "others", "all other gradients"),
        *([KEPT] if accumulates else []),
        many("output", "float", "squares", "sum of squares of each worker"),
        constant("count", "parameters"),
        constant("parts", "gradients per parameter"),
    )
    return VertexSpec("squares", fields, costs["squares"], _with_sums("squares", costs["squares"]))


def clip(costs: Mapping[str, CodeletCost]) -> VertexSpec:
    """Return the vertex that sums the squares of tiles or chips, and computes the factor that clips the gradients to the norm."""
    fields = (
        many("input", "float", "squares", "sums of squares"),
        one("output", "float", "factor", "the factor"),
        constant("count", "number of sums"),
    )
    return VertexSpec("clip", fields, costs["clip"], tuple(looping("sums of squares", Amount("count"), costs["clip"].element)))


@lru_cache(maxsize=64)
def sum_loops(cost: CodeletCost) -> tuple[Loop, ...]:
    """Return the loops of a worker that adds ``others`` gradients to the first gradient of each of ``count`` parameters."""
    return (
        *looping("passes over pairs of gradients", pairs(Amount("count")) * Amount("passes"), cost.row, "sums"),
        *looping("pairs of gradients added", pairs(Amount("count")) * Amount("others"), cost.product, "sums"),
    )


def summands(parts: Any) -> dict[str, Any]:
    """Return the amounts of a sum of `parts` gradients: passes with up to :data:`SUMMANDS` gradients, and gradients after the first."""
    return {"passes": -(-(parts - 1) // SUMMANDS), "others": parts - 1}


@lru_cache(maxsize=64)
def _with_sums(name: str, cost: CodeletCost) -> tuple[Loop, ...]:
    return (*looping(name, Amount("count"), cost.element), *sum_loops(cost))


def schedule(costs: Mapping[str, CodeletCost], *, accumulates: bool = False, scaled: bool = False) -> VertexSpec:
    """Return the vertex that computes the step size and the bias corrections (of Adam) for all updates of a training step."""
    factor = (LOSS_SCALE,) if scaled else ()
    return VertexSpec("schedule", (*_SCHEDULE, *(_ACCUMULATED if accumulates else ()), *factor), costs["update"])


def judge_update(costs: Mapping[str, CodeletCost], *, accumulates: bool = False) -> VertexSpec:
    """Return the vertex that counts updates with a scaled loss, and adapts the loss scale."""
    fields = (
        one("input", "float", "factor", "factor that scales the gradients down to the norm; NaN if a gradient is not finite"),
        one("inout", "float", "loss_scale", LOSS_SCALE.contents),
        one("output", "float", "gradient_scale", "loss scale that the gradients contain"),
        one("inout", "int", "step", "number of updates so far"),
        one("inout", "int", "good", "updates since the loss scale changed"),
        one("inout", "int", "skipped", "number of skipped updates"),
        *(_ACCUMULATED[:1] if accumulates else ()),
    )
    return VertexSpec("judge_update", fields, costs["judge_update"])


def sum_private(costs: Mapping[str, CodeletCost]) -> VertexSpec:
    """Return the vertex that sums the private gradients of a group of blocks."""
    return VertexSpec("sum_private", _SUM_PRIVATE, costs["update"], sum_loops(costs["update"]))


def sum_pieces(costs: Mapping[str, CodeletCost]) -> VertexSpec:
    """Return the vertex that sums a part of the gradient for an owner of weights of an indexed connection."""
    cost = costs["sum_pieces"]
    loops = (
        *looping("elements of the sum", Amount("count"), cost.element),
        *looping("pieces", Amount("number"), cost.row),
        *looping("values of pieces", Amount("values"), cost.value),
    )
    return VertexSpec("sum_pieces", _SUM_PIECES, cost, loops)


def weight_rows(costs: Mapping[str, CodeletCost], *, half: bool = False) -> VertexSpec:
    """Return the vertex that sorts rows of weights on a tile of their source; rows of float16 weights are padded to an even length."""
    if half:
        return _weight_rows_half(costs["weight_rows_half"])
    cost = costs["weight_rows"]
    loops = (
        *looping("columns of the target", Amount("columns"), cost.lookup, "lists"),
        *looping("rows of a column", Amount("rows"), cost.row, "copied"),
        *looping("weights", Amount("weights"), cost.element, "copied"),
    )
    return VertexSpec("weight_rows", _WEIGHT_ROWS, cost, loops)


def _weight_rows_half(cost: CodeletCost) -> VertexSpec:
    fields = tuple(replace(f, type="half", align=4 if f.name == "rows" else 0) if f.type == "float" else f for f in _WEIGHT_ROWS)
    loops = (
        *looping("runs of tiles", Amount("runs"), cost.run, "lists"),
        *looping("groups of a tile", Amount("groups"), cost.lookup, "joined"),
        *looping("columns", Amount("columns"), cost.row, "copied"),
        *looping("weights", Amount("weights"), cost.element, "copied"),
    )
    return VertexSpec("weight_rows_half", fields, cost, loops)


def pack_rows(costs: Mapping[str, CodeletCost]) -> VertexSpec:
    """Return the vertex that packs rows of weights on a tile of their target."""
    cost = costs["pack_rows"]
    loops = (
        *looping("pieces", Amount("pieces"), cost.lookup, "lists"),
        *looping("runs of tiles", Amount("runs"), cost.run, "counted"),
        *looping("tiles of a run", Amount("rows"), cost.row, "copied"),
        *looping("weights", Amount("weights"), cost.element, "copied"),
    )
    return VertexSpec("pack_rows", _PACK_ROWS, cost, loops)
