"""Read ONNX files into checked models, with numbers for all sizes."""
