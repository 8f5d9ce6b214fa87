"""The vertices of the emitted Poplar program, one kind a file."""
