"""Exchange before each superstep: bytes and fragments of tiles, and bytes between chips."""
