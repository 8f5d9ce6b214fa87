"""Bytes that tiles and chips exchange before each superstep."""
