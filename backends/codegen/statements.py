"""Statements of emitted code with a condition, which ``statement`` of ``common/statement.jinja`` prints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class Guarded:
    """A statement that runs only where `condition`, a C++ expression, holds."""

    condition: str
    statement: Statement


Statement: TypeAlias = str | Guarded
