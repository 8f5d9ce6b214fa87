"""Backends: each runs step programs of its targets, in this process or as an emitted project."""
