"""The PopTorch backend: it emits a Python package around a custom operation of PopART."""
