"""Passes over the graph, one a file; :mod:`snnc.compiler.passes.flow` lists them in order."""
