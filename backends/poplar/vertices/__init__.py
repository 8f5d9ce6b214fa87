"""Emitted code of vertices, by kind."""
