"""The vertices of the emitted Poplar program, one kind per file."""
