"""Supersteps: what the vertices of each compute, and what is exchanged before it."""
