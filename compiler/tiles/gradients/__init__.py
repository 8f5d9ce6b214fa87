"""Gradients on tiles: partial sums, windows, reductions, and the update of parameters."""
