"""Passes: functions from a graph to a changed copy. :mod:`snnc.compiler.passes.flow` lists, in order, those that run by default."""
