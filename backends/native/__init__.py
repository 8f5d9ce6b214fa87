"""What the CPU and the CUDA backend share: engines over emitted libraries, tables, and storage of sequences."""
