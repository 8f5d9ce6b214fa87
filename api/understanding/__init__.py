"""A model as snnc understands it: equations, resets, layers, synaptic operations and assumptions, for ``snnc check``."""
