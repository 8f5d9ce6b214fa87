"""Supersteps of a training step: the work of their vertices, from which their cycles are predicted."""
