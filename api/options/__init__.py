"""Compile options: their types, defaults, and the targets that accept them."""
