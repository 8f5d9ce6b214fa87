"""Emits, builds and drives Poplar programs."""
