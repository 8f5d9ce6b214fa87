"""Checks of a model: how snnc understands it, how it compares with other implementations, how it behaves on data."""
