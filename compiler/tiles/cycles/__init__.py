"""Worker cycles of blocks, and the work of tiles in each superstep."""
