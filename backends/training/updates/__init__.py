"""Updates of the weights: accumulation, batch normalisation, dropout, several processes, and scheduled values."""
