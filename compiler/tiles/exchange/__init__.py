"""Exchange before each superstep: numbers of bytes and fragments that tiles receive, and of bytes between chips."""
