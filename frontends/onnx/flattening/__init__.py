"""Run ONNX graphs with known shapes: the result is one flat graph without loops, whose constants are evaluated."""
