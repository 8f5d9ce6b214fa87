"""Names of the variants of PyTorch engines, importable without PyTorch."""

GRAPHED = "graphed"
"""A training step is one CUDA graph."""
