"""Shared parts of the CPU and CUDA backends: engines over emitted libraries, tables, and storage of sequences."""
