"""The tiles of each population, and the search for them."""
