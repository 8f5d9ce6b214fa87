"""Shared parts of all emitters: printed expressions, generated names, weights files, templates."""
