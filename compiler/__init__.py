"""Compiler from graphs to step programs and plans, independent of file formats and vendors."""
