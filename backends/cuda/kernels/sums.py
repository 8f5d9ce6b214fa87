"""Statements that compute the sums of currents or gradients: initial values, and contributions of connections (*terms*).

A block of threads computes the sums for a *tile*: the samples for which it reads each weight once. A *port* is an input of a neuron or, in
the backward pass, an output. Expressions are those of sample ``s`` of the tile.
"""

from __future__ import annotations

from textwrap import indent


def begin(port: int, value: str, samples: str = "TILE") -> str:
    """Return the statement that sets the sums of a port."""
    return f"for (int s = 0; s < {samples}; ++s) item.sum({port}, s) = {value};"


def add_each(port: int, value: str) -> str:
    """Return the statement that adds an expression."""
    return f"for (int s = 0; s < item.samples; ++s) item.sum({port}, s) += {value};"


def add_largest(port: int, values: str, windows: str) -> str:
    """Return the statement that adds the largest of `values` in a window of the table `windows`."""
    add = f"item.sum({port}, s) += values[largest({windows}, item.column, values)];"
    return f"for (int s = 0; s < item.samples; ++s) {{ const auto values = {values}; {add} }}"


def add_product(port: int, left: str, depth: int, columns: str) -> str:
    """Return the statements that add a product in float32: `left`, a row of `depth` numbers for each sample, times columns of a matrix."""
    return f"""{{
  float sums[TILE] = {{}};
  const Columns matrix = {columns};
  add_product<TILE>(sums, {left}, item.samples, {depth}, matrix.data, matrix.stride, matrix.column, warp);
  UNROLL(8)
  for (int s = 0; s < TILE; ++s) item.sum({port}, s) += sums[s];
}}"""


def from_later(delay: int, term: str) -> str:
    """Return a term that is added only if the step `delay` steps later exists."""
    return f"if (t + {delay} < run.steps + run.after) {{\n{indent(term, '  ')}\n}}"


def to_sent(port: int, dropped: str, term: str) -> str:
    """Return a term that is not added to neurons whose spikes were dropped."""
    return f"""{{
  float kept[TILE];
  for (int s = 0; s < item.samples; ++s) kept[s] = item.sum({port}, s);
{indent(term, "  ")}
  for (int s = 0; s < item.samples; ++s) item.sum({port}, s) = {dropped} ? kept[s] : item.sum({port}, s);
}}"""
