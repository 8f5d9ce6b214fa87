"""Edges with delays, and the removal of nodes that only pass on the sum of their inputs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class DelayedEdge:
    """An edge between two nodes with a delay in steps."""

    source: str
    target: str
    delay: int = 0


def dissolve(links: Iterable[DelayedEdge], passing: Iterable[str]) -> tuple[list[DelayedEdge], set[str]]:
    """Remove nodes in `passing`, which pass on the sum of their inputs, and connect their sources to their targets.

    A node with several sources and several targets is kept, so that the number of links never grows. A node with an edge to itself is
    kept, too.

    Returns
    -------
    list of DelayedEdge, set of str
        The remaining links, and the removed nodes.
    """
    into: defaultdict[str, list[DelayedEdge]] = defaultdict(list)
    out_of: defaultdict[str, list[DelayedEdge]] = defaultdict(list)
    for link in links:
        into[link.target].append(link)
        out_of[link.source].append(link)
    removed: set[str] = set()
    for name in passing:
        before, after = into[name], out_of[name]
        if min(len(before), len(after)) != 1 or any(link.target == name for link in after):
            continue
        removed.add(name)
        joined = [DelayedEdge(b.source, a.target, b.delay + a.delay) for b in before for a in after]
        for link in before:
            out_of[link.source].remove(link)
        for link in after:
            into[link.target].remove(link)
        for link in joined:
            out_of[link.source].append(link)
            into[link.target].append(link)
        del into[name], out_of[name]
    return [link for found in into.values() for link in found], removed
