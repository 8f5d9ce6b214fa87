"""Exchange before each superstep: bytes and fragments that tiles receive, and bytes between chips."""
