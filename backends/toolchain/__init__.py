"""C++ compilers, and the cache of what they built."""
