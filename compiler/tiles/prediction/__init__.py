"""Prediction of a whole training step: its supersteps in order, and the bytes of every tile."""
