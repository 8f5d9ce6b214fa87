"""Which CUDA kernels run in which order, over which buffers, and how long they are predicted to take."""
