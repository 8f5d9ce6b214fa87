"""Code shared by frontends: a NumPy interpreter of graphs, recognition of neurons, and descriptions of graphs in files."""
