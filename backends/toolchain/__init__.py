"""C++ and CUDA compilers, and the cache of their output."""
