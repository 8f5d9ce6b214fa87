"""A model as snnc understands it, for ``snnc check``: equations, resets, layers, synaptic operations and assumptions."""
