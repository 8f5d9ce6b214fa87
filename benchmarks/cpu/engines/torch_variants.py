"""Names of ways to run PyTorch, known where PyTorch is not."""

GRAPHED = "graphed"
"""A training step is one CUDA graph."""
