"""Passes: pure functions Graph -> Graph, one a file; snnc.compiler.passes.flow lists them in order."""
