"""Code shared by front ends: a NumPy interpreter of graphs, neuron recognition, notes in files."""
