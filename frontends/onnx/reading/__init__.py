"""ONNX files -> checked models with numbers for all sizes."""
