"""The CUDA backend: kernels with the time loop inside, built with nvcc; without a GPU the same sources run on the processor, for checks."""
