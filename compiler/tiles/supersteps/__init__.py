"""Supersteps: the work of their vertices, and the exchange before them."""
