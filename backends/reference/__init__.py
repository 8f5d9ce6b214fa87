"""The reference backend: it executes a step program with dense NumPy arrays and is the oracle for tests of all other backends."""
