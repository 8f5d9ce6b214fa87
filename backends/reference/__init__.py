"""The reference backend: executes a step program with dense NumPy arrays; the oracle that other backends are tested against."""
