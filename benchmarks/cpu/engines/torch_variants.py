"""Names of the ways to run PyTorch, available without PyTorch."""

GRAPHED = "graphed"
"""A training step is one CUDA graph."""
