"""Passes over graphs, one per file; :mod:`snnc.compiler.passes.flow` lists, in order, those that run by default."""
