"""Predicted bytes on every tile."""
