"""Batches of a training: from arrays, a data set, or a stream."""
