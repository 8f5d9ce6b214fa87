"""ONNX files -> Graph."""
