"""Vertices that update parameters: the optimiser, norms of gradients, copies of weights."""
