"""Batches of a training run: from arrays, a data set, or a stream."""
