"""Validation between epochs: metrics, early stopping, the best weights, logs."""
