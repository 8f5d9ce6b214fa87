"""Built-in partitioner: it starts with parts that grow greedily or follow the order of the neurons, and moves vertices to reduce the cut.

A *vertex* is a neuron or, in :func:`joined`, also a piece. The *cut* is the number of spikes per step between parts
(:meth:`~snnc.compiler.tiles.partition.hypergraph.Hypergraph.cut`). `max_work` is the maximum work of a part.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from snnc.compiler.tiles.partition.hypergraph import Floats, Hypergraph, Ints

CLOSE: Final = 0.7
"""The most strongly connected vertex joins a part together with vertices that have at least this fraction of its connectivity."""
GROWTH: Final = 0.25
"""Maximum relative growth of a part before connectivities are computed again."""
PIECES: Final = 4
"""Number of small pieces per part in :func:`joined`."""
ROUNDS: Final = 60
LEAST: Final = 1e-9
"""Minimum gain of a move, and of a successful round, as a fraction of the cut."""


def grow_and_move(graph: Hypergraph, parts: int, imbalance: float, seed: int) -> Ints:
    """Return the best of three starts, each improved by moves; see :data:`~snnc.compiler.tiles.partition.partitioners.Partitioner`."""
    max_work = graph.max_work(parts, imbalance)
    starts = [in_order(graph, parts), grown(graph, parts), joined(graph, parts, seed)]
    candidates = [moved(graph, balanced(graph, start, parts, max_work), parts, max_work, seed) for start in starts]
    return min(candidates, key=lambda part: graph.cut(part, parts))


def in_order(graph: Hypergraph, parts: int) -> Ints:
    """Cut the vertices, in order, into parts of even work."""
    middle = np.cumsum(graph.work) - graph.work / 2
    part: Ints = np.minimum((middle / graph.work.sum() * parts).astype(np.int64), parts - 1)
    return part


def grown(graph: Hypergraph, parts: int) -> Ints:
    """Grow the parts one after the other.

    A part starts at the unassigned vertex that is most strongly connected with earlier parts; then it adds the vertices closest to it.
    """
    weight = graph.rate / np.maximum(np.diff(graph.start) - 1, 1)
    incidence, transposed = graph.incidence, graph.incidence.T.tocsr()
    degree = np.maximum(transposed @ (weight * np.diff(graph.start)), 1e-30)
    part = np.full(graph.vertices, parts - 1, dtype=np.int64)
    free = np.ones(graph.vertices, bool)
    for k in range(parts - 1):
        room = float(graph.work[free].sum()) / (parts - k)
        taken = (~free).astype(np.float64)
        closeness = np.where(free, transposed @ (weight * (incidence @ taken)) / degree, -1.0)
        added = np.array([int(np.argmax(closeness))])
        score = np.zeros(graph.vertices)
        members = 0
        while len(added):
            part[added], free[added] = k, False
            room -= float(graph.work[added].sum())
            members += len(added)
            reached = transposed[added].sum(axis=0)
            nets = np.flatnonzero(reached)
            score += incidence[nets].T @ (weight[nets] * reached[nets]) / degree
            added = _closest(graph, np.where(free, score, -1.0), max(1, int(GROWTH * members)), room)
    return part


def joined(graph: Hypergraph, parts: int, seed: int) -> Ints:
    """Grow small pieces, then partition the hypergraph whose vertices are the pieces, so that small clusters stay whole."""
    number = min(PIECES * parts, graph.vertices)
    piece = grown(graph, number)
    coarse = Hypergraph.of(graph.net_of_pin, piece[graph.pins], graph.rate, np.bincount(piece, graph.work, number).astype(np.float64))
    max_work = coarse.max_work(parts, 0.0)
    return moved(coarse, balanced(coarse, grown(coarse, parts), parts, max_work), parts, max_work, seed)[piece]


def _closest(graph: Hypergraph, score: Floats, max_vertices: int, room: float) -> Ints:
    """Return at most `max_vertices` unassigned vertices (`score` >= 0) with nearly the highest score and a total work of about `room`."""
    highest = float(score.max())
    if highest < 0:
        return np.zeros(0, np.int64)
    nearest = np.flatnonzero(score >= CLOSE * highest)
    nearest = nearest[np.argsort(-score[nearest], kind="stable")][:max_vertices]
    return nearest[np.cumsum(graph.work[nearest]) - graph.work[nearest] / 2 <= room]


def balanced(graph: Hypergraph, part: Ints, parts: int, max_work: float) -> Ints:
    """Move vertices out of parts with more work than `max_work`, cheapest moves first."""
    part = part.copy()
    load = graph.loads(part, parts)
    for full in np.argsort(-load, kind="stable").tolist():
        if load[full] <= max_work:
            break
        gain, target = _best_moves(graph, part, parts, np.where(load < max_work, 0.0, np.inf))
        mine = np.flatnonzero(part == full)
        for vertex in mine[np.argsort(-gain[mine], kind="stable")].tolist():
            if load[full] <= max_work:
                break
            work = graph.work[vertex]
            to = int(target[vertex])
            if to == full or load[to] + work > max_work:
                to = int(np.argmin(load))
            if load[to] + work > max_work:
                continue
            part[vertex] = to
            load[full] -= work
            load[to] += work
    return part


def moved(graph: Hypergraph, part: Ints, parts: int, max_work: float, seed: int) -> Ints:
    """Move vertices with the largest gains, many at once, as long as that reduces the cut (after Fiduccia and Mattheyses, 1982).

    The gain of a move is by how much it reduces the cut if nothing else moves.
    """
    random = np.random.default_rng(seed)
    best, least_cut = part, graph.cut(part, parts)
    share = 0.5
    for _ in range(ROUNDS):
        gain, target = _best_moves(graph, best, parts, np.zeros(parts))
        movable = np.flatnonzero(gain > LEAST * max(least_cut, 1e-30))
        if not len(movable):
            break
        movable = movable[np.argsort(-gain[movable], kind="stable")][: max(1, int(share * len(movable)))]
        movable = movable[random.random(len(movable)) < 0.75] if share > 0.1 else movable  # two neighbours moved at once lose their gain
        changed = _within(graph, best, movable, target, parts, max_work)
        cut = graph.cut(changed, parts)
        if cut < least_cut * (1 - LEAST):
            best, least_cut, share = changed, cut, min(0.5, 1.5 * share)
        elif share * len(movable) <= 1:
            break
        else:
            share /= 3
    return best


def _best_moves(graph: Hypergraph, part: Ints, parts: int, closed: Floats) -> tuple[Floats, Ints]:
    """Return, for each vertex, the gain of its best move, and the part to which it moves; parts that are `closed` (inf) get no vertices."""
    incidence = graph.incidence
    member = np.zeros((graph.vertices, parts))
    member[np.arange(graph.vertices), part] = 1.0
    count = incidence @ member
    net = graph.net_of_pin
    alone = count[net, part[graph.pins]] == 1
    leave = np.bincount(graph.pins, graph.rate[net] * alone, graph.vertices)
    enter = incidence.T @ (graph.rate[:, None] * (count == 0)) + closed[None, :]
    enter[np.arange(graph.vertices), part] = np.inf
    target = np.argmin(enter, axis=1).astype(np.int64)
    return leave - enter[np.arange(graph.vertices), target], target


def _within(graph: Hypergraph, part: Ints, wanted: Ints, target: Ints, parts: int, max_work: float) -> Ints:
    moved_part = part.copy()
    room = max_work - graph.loads(part, parts)
    for k in range(parts):
        moving = wanted[target[wanted] == k]
        moving = moving[np.cumsum(graph.work[moving]) <= room[k]]
        moved_part[moving] = k
    return moved_part
