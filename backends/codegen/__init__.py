"""Shared parts of all emitters: printed expressions, safe names, weight files, templates."""
