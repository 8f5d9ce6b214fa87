"""Handlers of ONNX operators, a family a file."""
