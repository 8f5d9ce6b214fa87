"""Emitted code of parameters: variables, optimiser, gradient norms, copies of weights."""
