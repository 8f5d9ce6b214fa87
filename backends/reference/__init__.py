"""The reference backend: it runs a step program with dense NumPy arrays. Tests compare all other backends with it."""
