"""Surrogate derivatives of the spike function."""
