"""Plans as JSON: exact in both directions, and small enough for machines with many thousands of tiles.

Blocks, relays and partial sums are tables of columns. A column is coded as runs of equal differences, because tiles, neurons and samples
advance regularly. Bytes and cycles of tiles are coded as runs of equal numbers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, astuple, fields, is_dataclass
from itertools import accumulate, groupby
from types import NoneType
from typing import Any, Final, get_args, get_origin

from snnc.compiler.errors import PlanFileError
from snnc.compiler.ir.plan import Block, PartialSum, Plan, Relay
from snnc.compiler.neurons.plain_data import field_types

FORMAT: Final = "snnc plan 3"
"""Name and version of the format; other versions are refused."""
_CODED: Final = frozenset(
    {"target", "populations", "buses", "connections", "parts"}
    | {"memory", "phases", "loss_tiles", "tile_cycles", "memory_over_time", "traffic"}
)
"""Fields of a plan that :func:`plan_to_json` writes one by one; it writes all others unchanged."""


def runs(values: Iterable[int]) -> list[int]:
    """Code equal neighbours as ``[value, repeats, value, repeats, …]``."""
    return [x for value, group in groupby(values) for x in (int(value), sum(1 for _ in group))]


def unruns(coded: Sequence[int]) -> tuple[int, ...]:
    """Decode the result of :func:`runs`."""
    return tuple(value for value, times in zip(coded[::2], coded[1::2], strict=True) for _ in range(times))


def difference_runs(values: Sequence[int]) -> list[int]:
    """Code a column as runs of the differences between neighbours; the first difference is the first value."""
    return runs(b - a for a, b in zip([0, *values], values, strict=False))


def from_difference_runs(coded: Sequence[int]) -> list[int]:
    """Decode the result of :func:`difference_runs`."""
    return list(accumulate(unruns(coded)))


def _table(rows: Sequence[Any], kind: Any) -> dict[str, list[int]]:
    """Return the fields of `rows`, objects of the class `kind`, as coded columns."""
    return {field.name: difference_runs([getattr(row, field.name) for row in rows]) for field in fields(kind)}


def _rows(table: dict[str, list[int]], kind: Any) -> tuple[Any, ...]:
    return tuple(kind(*row) for row in zip(*(from_difference_runs(table[field.name]) for field in fields(kind)), strict=True))


def plan_to_json(plan: Plan) -> str:
    """Return `plan` as JSON text."""
    data = {
        "format": FORMAT,
        **{field.name: getattr(plan, field.name) for field in fields(plan) if field.name not in _CODED},
        "parts": plan.parts,
        "target": asdict(plan.target),
        "populations": [{**vars(p), "blocks": _table(p.blocks, Block)} for p in plan.populations],
        "buses": [
            {
                **{k: getattr(b, k) for k in ("id", "source", "buffer", "width", "kind", "lag", "capacity", "mode", "form")},
                "relays": _table(b.relays, Relay),
                "gradient": (g := b.gradient) and {"capacity": g.capacity, "parts": g.parts, "sums": _table(g.sums, PartialSum)},
            }
            for b in plan.buses
        ],
        "connections": [asdict(c) for c in plan.connections],
        "memory": {name: runs(tiles) for name, tiles in plan.memory.items()},
        "phases": [{**asdict(p), "loops": [astuple(loop) for loop in p.loops]} for p in plan.phases],
        "memory_over_time": [asdict(m) for m in plan.memory_over_time],
        "loss_tiles": list(plan.loss_tiles),
        "tile_cycles": {name: runs(tiles) for name, tiles in plan.tile_cycles.items()},
        "traffic": None if plan.traffic is None else {**asdict(plan.traffic), "flows": [astuple(flow) for flow in plan.traffic.flows]},
    }
    return json.dumps(data, separators=(",", ":"), ensure_ascii=True)


def from_plain(hint: Any, value: Any) -> Any:
    """Return the value of type `hint` from JSON types, in which lists stand for tuples, and lists or objects for data classes."""
    args = get_args(hint)
    if isinstance(value, tuple):  # decoded by the caller
        return value
    if NoneType in args:
        return None if value is None else from_plain(args[0], value)
    if is_dataclass(hint):
        kind: Any = hint
        types = field_types(kind)
        named = value if isinstance(value, dict) else dict(zip(types, value, strict=True))
        return kind(**{name: from_plain(types[name], v) for name, v in named.items()})
    if get_origin(hint) is tuple:
        if args[0] in (Block, Relay, PartialSum):
            return _rows(value, args[0])
        hints = [args[0]] * len(value) if args[-1] is ... else args
        return tuple(from_plain(h, v) for h, v in zip(hints, value, strict=True))
    return {name: from_plain(args[1], v) for name, v in value.items()} if get_origin(hint) is dict else value


def plan_from_json(text: str) -> Plan:
    """Read a plan written by :func:`plan_to_json`; any other text raises a PlanFileError."""
    try:
        data = json.loads(text)
        if not isinstance(data, dict) or data.pop("format", None) != FORMAT:
            raise PlanFileError(f"this is not a plan in the format {FORMAT!r}; compile the model again with this version of snnc.")
        tiles = {key: {name: unruns(coded) for name, coded in data[key].items()} for key in ("memory", "tile_cycles")}
        plan: Plan = from_plain(Plan, data | tiles)
        return plan
    except (json.JSONDecodeError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise PlanFileError(f"the plan cannot be read: {error!r}; compile the model again with this version of snnc.") from None
