"""Array utilities: parts, windows, sparse entries, channel orders, index maps, size limits and random numbers."""
