"""Write graphs as ONNX files: one ``Scan`` node over the time steps, with ONNX's own operators only."""
