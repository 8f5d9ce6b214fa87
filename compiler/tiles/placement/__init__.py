"""Which tiles each population takes, and the search for it."""
