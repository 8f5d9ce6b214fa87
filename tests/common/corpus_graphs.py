"""Graphs of the corpus. A process imports each file once; tests must not change the graphs."""

from functools import cache

from snnc.frontends.load import load

corpus_graph = cache(load)
