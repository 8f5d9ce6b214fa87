"""Blocks: the neurons and samples that one vertex of a population processes, and the tiles of populations."""
