"""The reference backend: executes a step program with dense NumPy arrays; the oracle of the tests of other backends."""

from __future__ import annotations

from snnc.backends.reference.engine import ReferenceEngine

__all__ = ["ReferenceEngine"]
