"""The CUDA backend: kernels that contain the time loop, built with nvcc. The same sources can run on the CPU as a check."""
