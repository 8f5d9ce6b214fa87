"""Gradients on tiles: reductions, norms, packed rows of weights, and the update of parameters."""
