"""stub"""
from __future__ import annotations
from dataclasses import dataclass
@dataclass(frozen=True)
class Facts:
    name: str
def recognise(model, parameters):
    return None
