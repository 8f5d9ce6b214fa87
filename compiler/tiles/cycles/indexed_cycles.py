"""Cycles and bytes that indexed connections add to blocks.

A block is the neurons and samples that one worker of a tile processes. An indexed connection (a convolution, for example) is stored as
tables, and a tile that owns some of its weights sums their gradients and updates them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from snnc.compiler.ir.arrays.sizes import FLOAT, HALF
from snnc.compiler.tiles.blocks.grouping import Ints
from snnc.compiler.tiles.indexed.holdings import TableAmounts
from snnc.compiler.tiles.indexed.indexed_links import IndexedLink, Side
from snnc.compiler.tiles.mapped.network import Layer, Link
from snnc.compiler.tiles.problem import MappingProblem

Holdings: TypeAlias = Callable[[IndexedLink, Side], TableAmounts]
"""Function that returns the sizes of a connection's tables on each tile."""


def estimated(neurons: Any, groups: Any) -> Holdings:
    """Return :data:`Holdings` for tables before placement: estimates for tiles with `neurons` neurons in `groups` column groups."""
    return lambda link, side: link.estimated(side, neurons, groups)


def chunks(samples: Any) -> Any:
    """Return the number of walks of the source gradient through its tables; each walk covers 8, 2 or 1 samples."""
    rest = samples % 8
    return samples // 8 + rest // 2 + rest % 2


def source_amounts(link: Link, held: dict[str, Any], columns: Any, samples: Any) -> dict[str, Any]:
    """Return the trip counts for an indexed connection on its source's side; a maximum reads its table only once for all samples."""
    rounds = 1 if link.chooses else chunks(samples)
    return {
        "found_rows": rounds * columns,
        "singles": rounds * held["singles"],
        "runs": rounds * held["runs"],
        "values": rounds * held["values"],
        "sample_values": samples * held["values"],
    }


def keys_passed(events: Any) -> Any:
    """Return the mean fraction of a table's keys that a search for the events of a sample passes.

    The keys of a table are the sources of its rows. Events and keys are sorted, and the search ends where the first of the two lists ends.
    If events and keys are mixed at random, a fraction 1 / (events + 1) of the keys comes after the last event.

    Examples
    --------
    >>> keys_passed(3)
    0.75
    """
    return events / (events + 1)


def target_amounts(link: Link, held: dict[str, Any], samples: Any, events: Any, passed: Any, usual: float = 0.0) -> dict[str, Any]:
    """Return the trip counts for an indexed connection with tables of the sizes `held` (:class:`TableAmounts`), on its target's side.

    A block finds its first event by binary search. It then walks through the events from its first source to its last source, and reads
    one more event. Each of the `samples` samples of the block has `events` events (the mean, or more for the slowest block). `usual`, the
    mean, determines the cycles of the binary search. The search by keys passes the fraction `passed` of a table's keys
    (:func:`keys_passed`) if the table reaches over all sources, and nearly all keys if it reaches over few: events then come after them.
    """
    biased = (held["bias_singles"] + held["bias_runs"]) > 0
    event_share, lookups = 1.0, held["span"]
    if link.events:
        event_share, reach_share = events / link.inputs, np.minimum(held["reach"] / link.inputs, 1.0)
        lookups = event_share * held["reach"] + held["ended"] + held["keys"] * (1 - reach_share * (1 - passed))
    return {
        "searches": samples * held["searched"] * expected_halvings(usual) if link.events else 0,
        "lookups": samples * lookups,
        "found_rows": samples * (event_share * held["span"] + biased),
        "singles": samples * (event_share * held["singles"] + held["bias_singles"]),
        "runs": samples * (event_share * held["runs"] + held["bias_runs"]),
        "values": samples * (event_share * held["values"] + held["bias_values"]),
    }


def more_amounts(link: Link, held: dict[str, Any], *, events: float = 0.0, passed: float = 0.0) -> dict[str, Any]:
    """Return how much :func:`target_amounts` grows per sample from no event to `events`, or from no key passed to the fraction `passed`."""
    more, less = target_amounts(link, held, 1, events, passed), target_amounts(link, held, 1, 0.0, 0.0)
    return {name: more[name] - less[name] for name in more}


def rows_read(layer: Layer, holdings: Holdings) -> Any:
    """Return the number of target neurons whose deltas a tile of `layer` reads for its indexed connections."""
    links = [link.indexed for link in layer.outgoing if link.indexed is not None and link.input_gradient]
    return sum(holdings(link, "source").total["read"] for link in links)


def indexed_bytes(
    problem: MappingProblem, layer: Layer, neurons: Any, samples: Any, shares: Any, holdings: Holdings
) -> dict[tuple[str, str], Any]:
    """Return the bytes of indexed connections on a tile, by category and lifetime; weights that the tile owns are not included.

    Each of `shares` sample groups stores its own weight gradients.
    """
    tables, weights, gradients = ((name, "always") for name in ("tables", "weights", "gradients"))
    private, copies = ("gradients", "shared gradients"), ("weights", "copies of numbers")
    # Weight gradients do not need the weights, but a backward pass that recomputes segments reads them until its end.
    read = copies if problem.segment else ("weights", "copies read forward")
    held_bytes: dict[tuple[str, str], Any] = dict.fromkeys((tables, weights, gradients, private, copies, read), 0)
    for link in layer.incoming:
        if link.indexed is not None:
            tables_held = holdings(link.indexed, "target").total
            held_bytes[tables] = held_bytes[tables] + tables_held["bytes"]
            copied = read if link.weight_gradient else weights
            held_bytes[copied] = held_bytes[copied] + _copy_bytes(link, tables_held)
            if link.chooses:
                # Per neuron. Forward: each sample's first entry with a spike, or the largest value (one per sample group). Backward: each
                # sample's chosen entry twice, for the target and for the source, and, of values, the largest one per sample group.
                choices = samples if link.events else shares
                held_bytes[weights] = held_bytes[weights] + FLOAT * neurons * choices
                if link.read_backward and problem.training:
                    held_bytes[gradients] = held_bytes[gradients] + FLOAT * neurons * (2 * samples + (0 if link.events else shares))
            if link.weight_gradient:
                held_bytes[private] = held_bytes[private] + FLOAT * shares * tables_held["size"]
    for link in layer.outgoing:
        if link.indexed is not None and link.input_gradient and problem.training:
            tables_held = holdings(link.indexed, "source").total
            held_bytes[tables] = held_bytes[tables] + tables_held["bytes"]
            copied = copies if link.weight_gradient else weights
            held_bytes[copied] = held_bytes[copied] + _copy_bytes(link, tables_held)
    return {name: np.ceil(value).astype(np.int64) for name, value in held_bytes.items()}


def _copy_bytes(link: Link, held: dict[str, Any]) -> Any:
    """Return the bytes of a copy of the weights and biases that tables refer to; weights may be float16, biases are float32."""
    return HALF * held["size"] + (FLOAT - HALF) * held["biases"] if link.half else FLOAT * held["size"]


def owned_estimate(problem: MappingProblem, layer: Layer, neurons: Any, replicas: Any) -> dict[tuple[str, str], Any]:
    """Return the bytes, by category and lifetime, of the weights that a tile owns if all tiles of `layer` own the same number."""
    links = [(link, link.indexed.owned * neurons / (layer.neurons * replicas)) for link in layer.incoming if link.indexed is not None]
    learned = sum(owned for link, owned in links if link.weight_gradient)
    values = owned_values(problem, sum(owned for _, owned in links), learned)
    halves = [(link, owned) for link, owned in links if link.half]
    if halves:
        saved = (FLOAT - HALF) * sum(owned for _, owned in halves) / FLOAT
        values["weights", "always"] = values["weights", "always"] - saved
    if halves and problem.network.rounding == "master":
        rest = sum(owned for link, owned in halves if link.weight_gradient)
        values["optimiser", "always"] = values["optimiser", "always"] + rest
    return {category: np.ceil(FLOAT * number).astype(np.int64) for category, number in values.items()}


def owned_values(problem: MappingProblem, owned: Any, learned: Any) -> dict[tuple[str, str], Any]:
    """Return the number of values stored for `owned` weights, of which `learned` are updated, by category and lifetime.

    Every worker of a tile stores its own sum of the gradients.
    """
    return {
        ("weights", "always"): owned,
        ("gradients", "always"): learned,
        ("gradients", "sums of shared gradients"): (problem.target.workers - 1) * learned,
        ("optimiser", "always"): problem.network.optimiser_values * learned,
    }


def halvings(ids: Ints) -> Ints:
    """Return the number of halvings (steps) of a binary search in a list of `ids` ids, which is the number of bits of `ids`."""
    return np.frexp(ids.astype(np.float64))[1].astype(np.int64)


def expected_halvings(mean: float) -> float:
    """Return the expected halvings of a binary search in N ids, ``floor(log2 N) + 1`` (0 if N is 0), for Poisson-distributed N.

    The probability that N reaches a power of two is approximated by a normal distribution.

    Examples
    --------
    >>> round(expected_halvings(100.0), 2)
    7.0
    >>> expected_halvings(0.0)
    0.0
    """
    if mean <= 0:
        return 0.0
    expected, power = 1.0 - math.exp(-mean), 2
    while power < 2 * mean + 8:
        expected += 0.5 * math.erfc((power - 0.5 - mean) / math.sqrt(2 * mean))
        power *= 2
    return expected
