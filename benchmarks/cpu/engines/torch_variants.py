"""Names of the variants of PyTorch engines, importable without PyTorch."""

GRAPHED = "graphed"
"""Variant in which a training step is one CUDA graph."""
