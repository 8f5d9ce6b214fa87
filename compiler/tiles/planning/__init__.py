"""Search over ways to plan a network on a machine of tiles: whole or in parts, in several neuron orders, on one chip or on all."""
