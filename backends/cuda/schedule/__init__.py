"""Schedule of the CUDA kernels, buffers between them, and their predicted times."""
