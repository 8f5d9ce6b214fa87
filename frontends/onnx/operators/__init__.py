"""Handlers of ONNX operators, one module per family."""
