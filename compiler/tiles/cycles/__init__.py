"""Worker cycles of blocks, and tile cycles of each superstep."""
