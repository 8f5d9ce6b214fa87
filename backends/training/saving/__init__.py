"""Checkpoints: weights, optimiser state and position of a training run."""
