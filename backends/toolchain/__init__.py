"""C++ compilers, and the cache of their output."""
