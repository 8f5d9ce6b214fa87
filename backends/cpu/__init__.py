"""The CPU backend: a C++17 program for this processor, built and loaded through the C interface that all programs share."""
