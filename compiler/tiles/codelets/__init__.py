"""Vertices of populations and of their relays: classes, loops and code."""
