"""Blocks (the neurons and samples that one worker processes), and ranges of tiles with the blocks of a population."""
