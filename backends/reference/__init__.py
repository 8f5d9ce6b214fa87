"""The reference backend: executes a step program with dense NumPy arrays; the oracle that other backends are tested against."""

from __future__ import annotations

from snnc.backends.reference.engine import ReferenceEngine

__all__ = ["ReferenceEngine"]
