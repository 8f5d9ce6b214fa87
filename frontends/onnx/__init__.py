"""The ONNX frontend: reads files into graphs, and writes graphs to files."""
