"""How a network is planned on a machine of tiles: whole, in parts, in other orders, on one chip or all; whichever is fastest."""
