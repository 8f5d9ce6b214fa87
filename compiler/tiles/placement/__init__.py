"""Placements: how many tiles each population takes, which of them it shares, and balanced ranges of tiles."""
