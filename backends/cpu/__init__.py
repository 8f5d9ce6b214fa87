"""The CPU backend: a C++17 program for the CPU of this machine, built here and loaded through the shared C ABI."""
