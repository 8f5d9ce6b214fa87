"""Handlers of ONNX operators, one family per file."""
