"""Supersteps of a training step, before their cycles are predicted: the work of their vertices, and the exchange before each superstep."""
