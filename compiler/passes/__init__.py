"""Passes over graphs, one per file; :mod:`snnc.compiler.passes.flow` lists them in order."""
