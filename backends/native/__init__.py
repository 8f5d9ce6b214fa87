"""Shared parts of the CPU and CUDA backends: engines for emitted libraries, tables of connections, and storage of sequences."""
