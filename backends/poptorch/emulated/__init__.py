"""A substitute for the module ``poptorch``: models run in PyTorch on the CPU, custom operations on the emulator.

The names and signatures are those of the PopTorch user guide (SDK 3.4); names that are missing here raise an AttributeError.
"""
