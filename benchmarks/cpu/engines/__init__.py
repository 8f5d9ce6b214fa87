"""One engine per file: a model, an optimiser and a training step, in the fastest public variant of each framework.

A file defines ``VERSIONS`` (the packages whose versions a row names), ``Engine``, see :mod:`snnc.benchmarks.cpu.engine`, and ``load``,
which brings in what the framework imports or starts only when it first runs: memory is counted from there. It imports its framework at
the top and is itself imported only by the worker's process, where a framework that is missing is reported as such.
"""
