"""ONNX graphs evaluated with known shapes, giving one flat graph of elementwise and tensor nodes."""
