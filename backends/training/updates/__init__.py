"""One update of the weights: batches and their parts, normalisation, dropout, several processes."""
