"""Terms of the sums of currents or gradients: initial values, and contributions of connections. ``cuda/sums.jinja`` prints their loops.

A block of threads computes the sums for a *tile*: the samples for which it reads each weight once. A *port* is an input of a neuron or, in
the backward pass, an output. Expressions are those of sample ``s`` of the tile.
"""

from __future__ import annotations

from typing import TypeAlias

Term: TypeAlias = str | dict[str, object]
"""A statement that adds to the sums, or the template data of one."""


def begin(port: int, value: str, samples: str = "TILE") -> Term:
    """Return a term that sets the sums of a port to `value` for `samples` samples; ``TILE`` is the largest number of samples of a tile."""
    return {"kind": "begin", "port": port, "value": value, "samples": samples}


def add_each(port: int, value: str) -> Term:
    """Return a term that adds the expression `value` for each sample."""
    return {"kind": "add each", "port": port, "value": value}


def add_largest(port: int, values: str, windows: str) -> Term:
    """Return a term that adds the largest of `values` in a window of the table `windows`."""
    return {"kind": "add largest", "port": port, "values": values, "windows": windows}


def add_product(port: int, left: str, depth: int, columns: str) -> Term:
    """Return a term that adds a product in float32: `left`, a row of `depth` numbers for each sample, times columns of a matrix."""
    return {"kind": "add product", "port": port, "left": left, "depth": depth, "columns": columns}


def from_later(delay: int, term: Term) -> Term:
    """Return a term that is added only if the step `delay` steps later exists."""
    return {"kind": "from later", "delay": delay, "term": term}


def to_sent(port: int, dropped: str, term: Term) -> Term:
    """Return a term that is not added to neurons whose spikes were dropped."""
    return {"kind": "to sent", "port": port, "dropped": dropped, "term": term}
