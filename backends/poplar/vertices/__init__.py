"""Emitted code that adds vertices, one kind per module."""
