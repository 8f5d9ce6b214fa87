"""What several front ends need: a NumPy interpreter of graphs, neuron recognition, notes in files."""
