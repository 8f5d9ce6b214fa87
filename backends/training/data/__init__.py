"""What a training reads: batches of arrays, of a data set, or of a stream."""
