"""What indexed connections add to the cycles and bytes of blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np

from snnc.compiler.indexed.holdings import Held
from snnc.compiler.mapping.indexed_links import IndexedLink, Side
from snnc.compiler.mapping.network import Layer, Link
from snnc.compiler.mapping.problem import Problem

FLOAT: Final = 4
TABLES: Final = "tables"
"""The category of memory that tables are counted in."""
Holdings: TypeAlias = Callable[[IndexedLink, Side], Held]
"""What the tables of a connection hold on each tile."""


def estimated(neurons: Any, groups: Any) -> Holdings:
    """Holdings of tiles with `neurons` in `groups` column groups before anything is placed."""
    return lambda link, side: link.estimated(side, neurons, groups)


def chunks(samples: Any) -> Any:
    """Times that the source gradient walks through its tables: for 8, 2 or 1 samples at once."""
    rest = samples % 8
    return samples // 8 + rest // 2 + rest % 2


def indexed_counts(
    layer: Layer, part: str, columns: Any, samples: Any, holdings: Holdings, seen: Callable[[Link], float]
) -> dict[str, Any]:
    """Trip counts of the largest block's loops over tables, with the events of a sample that each connection has `seen`."""
    found: dict[str, Any] = {}
    if part == "source_gradient":
        for link in layer.outgoing:
            if link.indexed is not None and link.input_gradient:
                _add(found, (_chosen_from if link.chooses else _source)(holdings(link.indexed, "source").largest, columns, samples))
        return found
    for link in layer.incoming:
        if link.indexed is not None and (part == "forward" or link.read_backward):
            counts = _target(link, holdings(link.indexed, "target").largest, samples, seen)
            if link.chooses:
                counts |= {"choices": counts.pop("values"), "elements": 2 * samples * columns}
            _add(found, counts)
    return found


def _add(found: dict[str, Any], more: dict[str, Any]) -> None:
    for name, value in more.items():
        found[name] = found.get(name, 0) + value


def _source(held: dict[str, Any], columns: Any, samples: Any) -> dict[str, Any]:
    rounds = chunks(samples)
    return {
        "founds": rounds * columns,
        "singles": rounds * held["singles"],
        "runs": rounds * held["runs"],
        "values": rounds * held["values"],
        "sample_values": samples * held["values"],
    }


def _chosen_from(held: dict[str, Any], columns: Any, samples: Any) -> dict[str, Any]:
    return {"founds": columns, "singles": held["singles"], "runs": held["runs"], "sample_choices": samples * held["values"]}


def _target(link: Link, held: dict[str, Any], samples: Any, seen_on: Callable[[Link], float]) -> dict[str, Any]:
    seen = seen_on(link) if link.events else held["span"]
    part = seen / link.inputs if link.events else 1.0
    biased = (held["bias_singles"] + held["bias_runs"]) > 0
    return {
        "lookups": samples * (seen + (held["keys"] if link.events else 0)),
        "founds": samples * (part * held["span"] + biased),
        "singles": samples * (part * held["singles"] + held["bias_singles"]),
        "runs": samples * (part * held["runs"] + held["bias_runs"]),
        "values": samples * (part * held["values"] + held["bias_values"]),
    }


def rows_read(layer: Layer, holdings: Holdings) -> Any:
    """Targets whose deltas a tile of `layer` reads for its indexed connections."""
    links = [link.indexed for link in layer.outgoing if link.indexed is not None and link.input_gradient]
    return sum(holdings(link, "source").total["read"] for link in links)


def indexed_bytes(
    problem: Problem, layer: Layer, neurons: Any, samples: Any, shares: Any, holdings: Holdings
) -> dict[tuple[str, str], Any]:
    """Bytes by category and lifetime: tables, copies of weights, private gradients for each of `shares`, a part of what is owned."""
    tables, weights, gradients, optimiser = ((name, "always") for name in (TABLES, "weights", "gradients", "optimiser"))
    private, copies = ("gradients", "shared gradients"), ("weights", "copies of numbers")
    found: dict[tuple[str, str], Any] = dict.fromkeys((tables, weights, gradients, optimiser, private, copies), 0)
    for link in layer.incoming:
        if link.indexed is not None:
            held = holdings(link.indexed, "target").total
            owned = link.indexed.owned * neurons / layer.neurons
            found[tables] = found[tables] + held["bytes"]
            copied = copies if link.weight_gradient else weights
            found[copied] = found[copied] + FLOAT * held["size"]
            found[weights] = found[weights] + FLOAT * owned
            if link.chooses:
                kept = samples if link.events else shares
                found[weights] = found[weights] + FLOAT * neurons * kept
                if link.read_backward and problem.training:
                    found[gradients] = found[gradients] + FLOAT * neurons * (2 * samples + (0 if link.events else shares))
            if link.weight_gradient:
                found[private] = found[private] + FLOAT * shares * held["size"]
                found[gradients] = found[gradients] + FLOAT * owned
                found[optimiser] = found[optimiser] + FLOAT * problem.network.moments * owned
    for link in layer.outgoing:
        if link.indexed is not None and link.input_gradient and problem.training:
            held = holdings(link.indexed, "source").total
            found[tables] = found[tables] + held["bytes"]
            copied = copies if link.weight_gradient else weights
            found[copied] = found[copied] + FLOAT * held["size"]
    return {name: np.ceil(value).astype(np.int64) for name, value in found.items()}
