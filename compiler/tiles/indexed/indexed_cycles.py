"""The cycles and bytes that indexed connections add to blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np

from snnc.compiler.ir.arrays.sizes import FLOAT
from snnc.compiler.tiles.indexed.halvings import expected_halvings
from snnc.compiler.tiles.indexed.holdings import TableAmounts
from snnc.compiler.tiles.indexed.indexed_links import IndexedLink, Side
from snnc.compiler.tiles.network import Layer, Link
from snnc.compiler.tiles.problem import MappingProblem

TABLES: Final = "tables"
"""The category of memory that tables are counted in."""
Holdings: TypeAlias = Callable[[IndexedLink, Side], TableAmounts]
"""What the tables of a connection hold on each tile."""


def estimated(neurons: Any, groups: Any) -> Holdings:
    """Holdings of tiles with `neurons` in `groups` column groups before anything is placed."""
    return lambda link, side: link.estimated(side, neurons, groups)


def chunks(samples: Any) -> Any:
    """Times that the source gradient walks through its tables: for 8, 2 or 1 samples at once."""
    rest = samples % 8
    return samples // 8 + rest // 2 + rest % 2


def source_amounts(link: Link, held: dict[str, Any], columns: Any, samples: Any) -> dict[str, Any]:
    """Amounts of one connection on its source's side; a maximum walks once through its table."""
    rounds = 1 if link.chooses else chunks(samples)
    return {
        "founds": rounds * columns,
        "singles": rounds * held["singles"],
        "runs": rounds * held["runs"],
        "values": rounds * held["values"],
        "sample_values": samples * held["values"],
    }


def keys_passed(events: Any) -> Any:
    """Part of a table's keys that a search for the events of a sample walks past, in the mean.

    Events and keys both ascend, and the search ends with either list: where they lie anywhere among each other, 1 / (events + 1) of the
    keys are behind the last event.

    Examples
    --------
    >>> keys_passed(3)
    0.75
    """
    return events / (events + 1)


def target_amounts(link: Link, held: dict[str, Any], samples: Any, events: Any, passed: Any, usual: float = 0.0) -> dict[str, Any]:
    """Amounts of one connection on its target's side, for `events` events per sample.

    `passed` is the part of a table's keys that their search walks past, see :func:`keys_passed`; `usual` is the mean number of events: how
    long it takes to find the first that may reach a block hardly depends on their number. A block walks through the events from its first
    source to its last, and past one more. Keys are after the last event only where its sources reach as far as those of all.
    """
    biased = (held["bias_singles"] + held["bias_runs"]) > 0
    part, lookups = 1.0, held["span"]
    if link.events:
        part, wide = events / link.inputs, np.minimum(held["reach"] / link.inputs, 1.0)
        lookups = part * held["reach"] + held["ended"] + held["keys"] * (1 - wide * (1 - passed))
    return {
        "searches": samples * held["searched"] * expected_halvings(usual) if link.events else 0,
        "lookups": samples * lookups,
        "founds": samples * (part * held["span"] + biased),
        "singles": samples * (part * held["singles"] + held["bias_singles"]),
        "runs": samples * (part * held["runs"] + held["bias_runs"]),
        "values": samples * (part * held["values"] + held["bias_values"]),
    }


def more_amounts(link: Link, held: dict[str, Any], *, events: float = 0.0, passed: float = 0.0) -> dict[str, Any]:
    """What `events` more in a sample, or keys that are walked past, add to :func:`target_amounts`."""
    more, less = target_amounts(link, held, 1, events, passed), target_amounts(link, held, 1, 0.0, 0.0)
    return {name: more[name] - less[name] for name in more}


def rows_read(layer: Layer, holdings: Holdings) -> Any:
    """Targets whose deltas a tile of `layer` reads for its indexed connections."""
    links = [link.indexed for link in layer.outgoing if link.indexed is not None and link.input_gradient]
    return sum(holdings(link, "source").total["read"] for link in links)


def indexed_bytes(
    problem: MappingProblem, layer: Layer, neurons: Any, samples: Any, shares: Any, holdings: Holdings
) -> dict[tuple[str, str], Any]:
    """Bytes by category and lifetime: tables, copies of weights, private gradients for each of `shares`; without what it owns."""
    tables, weights, gradients = ((name, "always") for name in (TABLES, "weights", "gradients"))
    private, copies = ("gradients", "shared gradients"), ("weights", "copies of numbers")
    # The backward pass forms gradients of a target's weights without them; where it runs forward again, they are read until it ends.
    read = copies if problem.segment else ("weights", "copies read forward")
    found: dict[tuple[str, str], Any] = dict.fromkeys((tables, weights, gradients, private, copies, read), 0)
    for link in layer.incoming:
        if link.indexed is not None:
            held = holdings(link.indexed, "target").total
            found[tables] = found[tables] + held["bytes"]
            copied = read if link.weight_gradient else weights
            found[copied] = found[copied] + FLOAT * held["size"]
            if link.chooses:
                kept = samples if link.events else shares
                found[weights] = found[weights] + FLOAT * neurons * kept
                if link.read_backward and problem.training:
                    found[gradients] = found[gradients] + FLOAT * neurons * (2 * samples + (0 if link.events else shares))
            if link.weight_gradient:
                found[private] = found[private] + FLOAT * shares * held["size"]
    for link in layer.outgoing:
        if link.indexed is not None and link.input_gradient and problem.training:
            held = holdings(link.indexed, "source").total
            found[tables] = found[tables] + held["bytes"]
            copied = copies if link.weight_gradient else weights
            found[copied] = found[copied] + FLOAT * held["size"]
    return {name: np.ceil(value).astype(np.int64) for name, value in found.items()}


def owned_estimate(problem: MappingProblem, layer: Layer, neurons: Any, replicas: Any) -> dict[tuple[str, str], Any]:
    """Bytes by category and lifetime of weights that a tile owns, when all tiles of `layer` own alike."""
    links = [(link, link.indexed.owned * neurons / (layer.neurons * replicas)) for link in layer.incoming if link.indexed is not None]
    learned = sum(owned for link, owned in links if link.weight_gradient)
    numbers = owned_numbers(problem, sum(owned for _, owned in links), learned)
    return {kept: np.ceil(FLOAT * number).astype(np.int64) for kept, number in numbers.items()}


def owned_numbers(problem: MappingProblem, owned: Any, learned: Any) -> dict[tuple[str, str], Any]:
    """Numbers by category and lifetime for `owned` weights of which `learned` are updated: every worker sums a share of the gradients."""
    return {
        ("weights", "always"): owned,
        ("gradients", "always"): learned,
        ("gradients", "sums of shared gradients"): (problem.target.workers - 1) * learned,
        ("optimiser", "always"): problem.network.optimiser_values * learned,
    }
