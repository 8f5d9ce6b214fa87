"""Neurons as equations: the equation language, derivatives, and kernels."""
