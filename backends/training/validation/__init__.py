"""Validation after each epoch: metrics, early stopping, the best weights, logs."""
