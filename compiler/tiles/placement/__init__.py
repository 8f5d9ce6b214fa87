"""Placements: the number of tiles of each population, the tiles that it shares, and balanced ranges of tiles."""
