"""Figures of the paper on sparse BPTT (arXiv 2311.04386)."""
