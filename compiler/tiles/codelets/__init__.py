"""The vertices of a network's populations and relays, one class for each structure."""
