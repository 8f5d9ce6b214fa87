"""PopTorch target: a plan becomes a Python package around a custom operation of PopART."""
