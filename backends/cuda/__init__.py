"""The CUDA backend: kernels that contain the time loop, built with nvcc; for checks, the same sources run on the CPU."""
