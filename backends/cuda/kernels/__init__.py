"""The code of CUDA kernels, printed from a network's operations."""
