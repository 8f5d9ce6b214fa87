"""Neurons as equations: the language, its derivatives, and kernels."""
