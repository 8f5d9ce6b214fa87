"""Checks of a model: its interpretation by snnc, comparison with other implementations, measured activity on data."""
