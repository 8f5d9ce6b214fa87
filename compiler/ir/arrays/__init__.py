"""How arrays are indexed and drawn: parts, windows, sparse entries, orders of channels, sizes, random numbers."""
