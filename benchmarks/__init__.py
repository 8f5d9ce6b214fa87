"""Benchmarks: networks, published timings, measured training steps and reproduced figures, for ``snnc bench`` and ``snnc reproduce``."""
