"""Evaluate ONNX graphs with known shapes into one flat graph of elementwise and tensor nodes."""
