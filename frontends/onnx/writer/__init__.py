"""Write graphs as ONNX files, run files in ONNX Runtime, and compare the results."""
