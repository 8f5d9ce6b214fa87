"""Placements: the tiles of each population, separate or shared, with balanced work."""
