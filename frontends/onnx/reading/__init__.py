"""Read and check ONNX files, choose numbers for dynamic sizes, and find the states of single steps."""
