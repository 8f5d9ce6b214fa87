"""Write graphs as ONNX files: one ``Scan`` over the time steps, with only ONNX's own operators."""
