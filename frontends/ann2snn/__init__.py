"""Feed-forward ReLU networks from ONNX files -> spiking networks of integrate-and-fire neurons."""
