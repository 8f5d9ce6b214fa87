"""Plans as JSON: exact in both directions, and small enough for machines with many thousands of tiles.

Blocks, relays and partial sums are tables of columns. A column is coded as runs of equal differences, because tiles, neurons and samples
advance regularly. Bytes and cycles of tiles are coded as runs of equal numbers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, astuple, fields
from itertools import accumulate, groupby
from typing import Any, Final

from snnc.compiler.errors import PlanFileError
from snnc.compiler.ir.plan import (
    Block,
    BusPlan,
    ConnectionPlan,
    GradientPlan,
    LayerFlow,
    MemoryPhase,
    PartialSum,
    Phase,
    PhaseLoop,
    Plan,
    PlanTraffic,
    PopulationPlan,
    Relay,
)
from snnc.compiler.machines.target import Target

FORMAT: Final = "snnc plan 3"
"""Name and version of the format; other versions are refused."""
_CODED: Final = frozenset(
    {"target", "populations", "buses", "connections", "parts"}
    | {"memory", "phases", "loss_tiles", "tile_cycles", "memory_over_time", "traffic"}
)
"""Fields of a plan that are converted; all others are written unchanged."""


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
    """Return the objects from the result of :func:`_table`."""
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
                "gradient": _gradient(b.gradient),
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


def _gradient(plan: GradientPlan | None) -> dict[str, Any] | None:
    return None if plan is None else {"capacity": plan.capacity, "parts": plan.parts, "sums": _table(plan.sums, PartialSum)}


def _gradient_of(data: dict[str, Any] | None) -> GradientPlan | None:
    return None if data is None else GradientPlan(**{**data, "sums": _rows(data["sums"], PartialSum)})


def _traffic_of(data: dict[str, Any] | None) -> PlanTraffic | None:
    """Return the traffic of a plan from JSON types."""
    if data is None:
        return None
    links = {kind: tuple((source, tuple(to), size) for source, to, size in sent) for kind, sent in data["links"].items()}
    flows = tuple(LayerFlow(*flow) for flow in data["flows"])
    chips = {kind: tuple(map(tuple, rows)) for kind, rows in data["chips"].items()}
    return PlanTraffic(tuple(data["nodes"]), flows, chips, links)


def plan_from_json(text: str) -> Plan:
    """Read a plan written by :func:`plan_to_json`; any other text raises a PlanFileError."""
    try:
        data = json.loads(text)
        if not isinstance(data, dict) or data.pop("format", None) != FORMAT:
            raise PlanFileError(f"this is not a plan in the format {FORMAT!r}; compile the model again with this version of snnc.")
        return Plan(
            **{
                **data,
                "target": Target.from_data(data["target"]),
                "populations": tuple(
                    PopulationPlan(**{**p, "starts": tuple(p["starts"]), "blocks": _rows(p["blocks"], Block)})
                    for p in data["populations"]
                ),
                "buses": tuple(
                    BusPlan(**{**b, "relays": _rows(b["relays"], Relay), "gradient": _gradient_of(b["gradient"])})
                    for b in data["buses"]
                ),
                "connections": tuple(ConnectionPlan(**c) for c in data["connections"]),
                "memory": {name: unruns(coded) for name, coded in data["memory"].items()},
                "traffic": _traffic_of(data.get("traffic")),
                "memory_over_time": tuple(MemoryPhase(**m) for m in data.get("memory_over_time", ())),
                "phases": tuple(Phase(**{**p, "loops": tuple(PhaseLoop(*loop) for loop in p.get("loops", ()))}) for p in data["phases"]),
                "parts": {name: tuple(ids) for name, ids in data.get("parts", {}).items()},
                "loss_tiles": tuple(data["loss_tiles"]),
                "streaming_bytes": tuple(data.get("streaming_bytes", ())),
                "tile_cycles": {name: unruns(coded) for name, coded in data["tile_cycles"].items()},
            }
        )
    except (json.JSONDecodeError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise PlanFileError(f"the plan cannot be read: {error!r}; compile the model again with this version of snnc.") from None
