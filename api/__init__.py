"""snnc: a graph compiler for spiking neural networks."""
