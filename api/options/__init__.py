"""The options of a compilation: their kinds, their defaults, and the targets that accept them."""
