"""The CPU backend: a C++17 program for the processor at hand, built and loaded through the C interface that all programs share."""
