"""Indexing and drawing of arrays: parts, windows, sparse entries, orders of channels, sizes, random numbers."""
