"""What snnc understood of a model: equations, resets, layers, synaptic operations and assumptions, for ``snnc check``."""
