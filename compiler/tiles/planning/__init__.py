"""Choice of the fastest plan on a machine of tiles: whole or in parts, in several orders of neurons, on one chip or on all."""
