"""Code shared by frontends: a NumPy interpreter of graphs, neuron recognition, notes in files."""
