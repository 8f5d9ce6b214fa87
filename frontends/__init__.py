"""Frontends: convert model files, PyTorch modules and networks written in Python to graphs."""
