"""Weights to a group, split into weights to each of its nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from snnc.compiler.ir.graph import Conv, Linear, Operation, Sparse
from snnc.frontends.dsl.connections.base import Branch


def split_rows(branches: Sequence[Branch], ranges: Sequence[tuple[int, int]]) -> list[tuple[Branch, ...]] | None:
    """Return for each range of the outputs (along their first axis) its branches.

    None if one has no weight that divides into such parts, or one of the parts would be empty.
    """
    found = []
    for start, stop in ranges:
        parts = [(branch, _rows(branch.operations[-1], start, stop)) for branch in branches]
        if any(part is None for _, part in parts):
            return None
        filled = [(branch, part) for branch, part in parts if part is not None and part.weight.size]
        if not filled or any(part.bias is not None and not part.weight.size for _, part in parts if part is not None):
            return None
        found.append(tuple(replace(branch, operations=(*branch.operations[:-1], part)) for branch, part in filled))
    return found


def _rows(operation: Operation, start: int, stop: int) -> Linear | Conv | Sparse | None:
    match operation:
        case Linear(bias=bias) | Conv(groups=1, bias=bias):
            return replace(operation, weight=operation.weight[start:stop], bias=None if bias is None else bias[start:stop])
        case Sparse(indptr=indptr, bias=bias):
            first, last = int(indptr[start]), int(indptr[stop])
            return replace(
                operation,
                weight=operation.weight[first:last],
                indices=operation.indices[first:last],
                indptr=indptr[start : stop + 1] - indptr[start],
                shape=(stop - start, operation.shape[1]),
                bias=None if bias is None else bias[start:stop],
            )
        case _:
            return None
