"""Shared parts of the front ends: a NumPy interpreter of graphs, neuron recognition, notes in files."""
