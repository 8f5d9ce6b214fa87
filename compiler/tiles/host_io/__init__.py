"""Transfers between host, streaming memory and tiles."""
