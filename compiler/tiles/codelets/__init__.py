"""The vertices of a network's populations and relays: their classes, loops and code."""
