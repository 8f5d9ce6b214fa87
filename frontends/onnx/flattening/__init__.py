"""ONNX graphs run with known shapes, which leaves one flat graph of elementwise and tensor nodes."""
