"""The CUDA backend: kernels containing the time loop, built with nvcc; for checks the same sources run on the processor."""
