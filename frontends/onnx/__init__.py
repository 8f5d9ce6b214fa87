"""The ONNX front end: reads files into graphs, and writes graphs to files."""
