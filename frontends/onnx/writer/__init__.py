"""Graphs -> ONNX files: one ``Scan`` node over the time steps, ONNX's own operators only."""
