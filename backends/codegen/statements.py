"""Conditional statements of emitted code, printed by the macro ``statement`` of ``common/statement.jinja``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class Guarded:
    """A statement that runs only if `condition`, a C++ expression, is true."""

    condition: str
    statement: Statement


Statement: TypeAlias = str | Guarded
