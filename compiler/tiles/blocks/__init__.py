"""Blocks (the neurons and samples that one worker processes), and the tiles that run the blocks of a population."""
