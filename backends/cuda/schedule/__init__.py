"""The order of the CUDA kernels, the buffers between them, and their predicted times."""
