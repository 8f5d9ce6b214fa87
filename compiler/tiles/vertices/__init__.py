"""Vertices of a plan: their fields, loops and costs."""
