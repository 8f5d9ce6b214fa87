"""One-step delays that a NIR file can omit, because its readers place them where a cycle closes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from snnc.frontends.nir.cycles import closing_edges
from snnc.frontends.nir.errors import NirCycleError
from snnc.frontends.nir.reading.fields import NirNode
from snnc.frontends.nir.reading.flatten import Flat
from snnc.frontends.nir.wiring import DelayedEdge


def plain_links(links: Iterable[DelayedEdge], nodes: Mapping[str, Any]) -> set[DelayedEdge]:
    """Return the one-step links to which a reader assigns their delay if they are written as plain edges.

    Parameters
    ----------
    links
        Between nodes of the file.
    nodes
        Nodes of the nir package by name.
    """
    links = list(links)
    chosen = {link for link in links if link.delay == 1}
    while chosen:
        flat = Flat({name: NirNode(name, type(node).__name__) for name, node in nodes.items()})
        for link in links:
            flat.connect(link.source, link.target)
        delayed = {(link.source, link.target): link.delay for link in links if link.delay and link not in chosen}
        try:
            closing = set(closing_edges(flat, delayed))
        except NirCycleError:
            return set()
        kept = {link for link in chosen if (link.source, link.target) in closing}
        if kept == chosen:
            break
        chosen = kept
    return chosen
