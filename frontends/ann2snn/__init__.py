"""Convert feed-forward ReLU networks from ONNX files to spiking networks of integrate-and-fire neurons."""
