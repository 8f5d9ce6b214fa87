"""Schedule of the CUDA kernels, with the buffers between kernels and the predicted time of each kernel."""
