"""The training loop: batches, updates, checkpoints, several processes."""
