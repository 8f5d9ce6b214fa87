"""The ONNX front end: files to graphs, and graphs to files."""
