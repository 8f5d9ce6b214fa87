"""Passes over the graph, one per file; :mod:`snnc.compiler.passes.flow` lists them in order."""
