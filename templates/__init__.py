"""Jinja templates and runtime files of emitted programs, one folder per target; snnc imports no code from this package."""
