"""What an output of the file is: all steps of a value, or its last, sum, mean or maximum over the steps."""

from __future__ import annotations

from typing import cast

import numpy as np

from snnc.compiler.graph import Readout
from snnc.frontends.onnx.errors import ReadoutError, TimeMixingError
from snnc.frontends.onnx.node import Node, Pool
from snnc.frontends.onnx.roll import Const, Operand, Ref, Roller, StepClass
from snnc.frontends.onnx.static import summands, unscaled
from snnc.frontends.onnx.step import Result
from snnc.frontends.onnx.timeline import Timeline, stacked


def roll_output(pool: Pool, roller: Roller, name: str, output: Node) -> Result:
    """Roll up one output.

    Raises
    ------
    ReadoutError
        It is no value of a step and no summary over the steps.
    """
    line = roller.line
    if output.value is not None:
        raise ReadoutError(f"the output '{name}' is constant; it does not depend on the inputs.")
    for axis in range(len(output.shape)):
        rows = stacked(pool, line, output, axis)
        if rows is not None:
            return Result(name, roller.roll(dict(enumerate(rows))), "all", axis, rows[-1].shape, tuple(rows))
    _check_stack(line, name, output)
    inner, scale = unscaled(output)
    summary = inner.inputs[0] if inner.op == "reshape" else inner
    if summary.op == "reduce":
        return _reduced(pool, roller, name, output, summary, scale)
    added = _added(roller, name, output)
    if added is not None:
        return added
    value = roller.roll({line.steps - 1: output})
    return Result(name, value, "last", None, output.shape)


def _check_stack(line: Timeline, name: str, output: Node) -> None:
    if output.op == "concat" and len(output.inputs) == line.steps and output.shape[cast("int", output.attrs[0])] == line.steps:
        raise TimeMixingError(
            f"the output '{name}' stacks {line.steps} values that do not follow the steps of the input one by one (reversed, strided or "
            "future steps); snnc reads causal models whose outputs are in order."
        )


def _added(roller: Roller, name: str, output: Node) -> Result | None:
    """Roll up an output that adds up its steps where no input tells the time."""
    steps = roller.line.steps
    parts, scale = summands(output)
    kind: Readout | None = "sum" if scale == 1.0 else "mean" if np.isclose(scale * steps, 1, rtol=1e-5) else None
    if roller.line.timed or len(parts) != steps or kind is None:
        return None
    return Result(name, roller.roll(dict(enumerate(parts))), kind, None, output.shape)


def _reduced(pool: Pool, roller: Roller, name: str, output: Node, summary: Node, scale: float) -> Result:
    kind, axes = cast("tuple[str, tuple[int, ...]]", summary.attrs)
    line = roller.line
    rows = stacked(pool, line, summary.inputs[0], axes[0]) if len(axes) == 1 else None
    if kind == "sum" and np.isclose(scale * line.steps, 1, rtol=1e-5):
        kind, scale = "mean", 1.0
    if rows is None or kind not in ("sum", "mean", "max") or scale != 1.0:
        raise ReadoutError(
            f"the output '{name}' is the {kind} over the axes {list(axes)} of {list(summary.inputs[0].shape)}; "
            "snnc reads the last value, sum, mean and maximum over all steps. Return the values of all steps instead."
        )
    return Result(name, roller.roll(dict(enumerate(rows))), cast("Readout", kind), None, output.shape)


def accumulated(roller: Roller, results: list[Result]) -> list[Result]:
    """Turn a sum or mean that the model accumulates step by step into a readout of what it accumulates."""
    return [_accumulated(roller, r) if r.readout == "last" else r for r in results]


def _accumulated(roller: Roller, result: Result) -> Result:
    readout: Readout = "sum"
    value = result.value
    if not isinstance(value, Ref) or value.delay:
        return result
    made = roller.classes[value.cls]
    if made.op in ("div", "mul") and len(made.operands) == 2:
        factor = next((o for o in made.operands if isinstance(o, Const)), None)
        inner = next((o for o in made.operands if isinstance(o, Ref)), None)
        if factor is None or inner is None or inner.delay or factor.value.size != 1:
            return result
        scale = float(factor.value.reshape(-1)[0])
        scale = 1 / scale if made.op == "div" and scale and made.operands[0] is inner else scale
        if not np.isclose(scale * roller.line.steps, 1, rtol=1e-5):
            return result
        made, readout = roller.classes[inner.cls], "mean"
    summand = _summand(roller, made)
    return result if summand is None else Result(result.name, summand, readout, None, result.shape)


def _summand(roller: Roller, made: StepClass) -> Operand | None:
    if made.op != "add" or len(made.operands) != 2:
        return None
    own = Ref(made.id, 1)
    rest = [o for o in made.operands if o != own]
    if len(rest) != 1 or not isinstance(rest[0], Ref):
        return None
    users = [c.id for c in roller.classes if c.id != made.id for o in c.operands if isinstance(o, Ref) and o.cls == made.id]
    if len(users) > 1 or any(roller.classes[u].op not in ("div", "mul") for u in users):
        return None
    starts = [n for nodes in made.initial.values() for n in nodes]
    firsts = made.forced.get(0, [])
    summand = roller.classes[rest[0].cls]
    zero_start = all(n.value is not None and not n.value.any() for n in starts)
    alike = all(n is summand.nodes.get(0) or n in summand.forced.get(0, ()) for n in firsts)
    later = set(made.forced) - {0}
    if not zero_start or not alike or later or not (starts or firsts):
        return None
    return rest[0]
